"""The guided tour: a local cluster on virtual time, played at the speed of a person's eyes."""
