"""Why things are as they are: pure functions from the cluster's objects to sentences, verdicts and overviews."""
