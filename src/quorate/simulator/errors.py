"""What `drbdsetup` prints and returns when the kernel says no; texts as recorded, exit codes by facts/agent 2.3.

A refusal is raised by the model as data and turned into output in one place, so the same refusal cannot be worded
in two ways.
"""

from __future__ import annotations

from typing import Final

from quorate.simulator.result import Result

CONFIGURATION: Final = {
    102: "Local address(port) already in use.",
    103: "Remote address(port) already in use.",
    104: "Can not open backing device.",
    105: "Can not open meta device.",
    111: "Low.dev. smaller than requested DRBD-dev. size.",
    112: "Meta device too small.",
    116: "Lower device / meta device / index combination invalid.",
    118: "IO error(s) occurred during initial access to meta-data.\n",
    119: "No valid meta-data signature found.\n\n\t==> Use 'drbdadm create-md res' to initialize meta-data area. <==\n",
    120: "The 'cram-hmac-alg' you specified is not known in the kernel. "
    "(Maybe you need to modprobe it, or modprobe hmac?)",
    123: "--discard-my-data not allowed when primary.",
    124: "Device is attached to a disk (use detach first)",
    125: "Device has a net-config (use disconnect first)",
    126: "UnknownMandatoryTag",
    127: "Device minor not allocated",
    130: "Resize not allowed during resync.",
    134: "Sync-pause flag is already set",
    135: "Sync-pause flag is already cleared",
    138: "Device does not have a disk-config",
    139: "Protocol C required",
    146: "verify-alg not known in the kernel",
    150: "Can only attach to the data we lost last (see kernel log).",
    151: "Need to be StandAlone",
    158: "Unknown resource",
    159: "Resource still in use (delete all minors first)",
    160: "Minor still configured (down it first)",
    161: "Minor or volume exists already (delete it first)",
    162: "Invalid configuration request",
    164: "Can not clear allow_two_primaries as long as\nthere a primaries on both sides",
    165: "Unclean meta-data found.\nYou need to 'drbdadm apply-al res'\n",
    170: "Implicit device shrinking not allowed.",
    171: "Invalid peer-node-id",
    173: "Combination of local address(port) and remote address(port) already in use\n",
    174: "Already exists\n",
}

STATE_CHANGE: Final = {
    -1: "Multiple primaries not allowed by config",
    -2: "Need access to UpToDate data",
    -4: "Can not resync without local disk",
    -5: "Can not resync without remote disk",
    -6: "Refusing to be Outdated while Connected",
    -8: "Can not start OV/resync since it is already active",
    -10: "State change was refused by peer node",
    -11: "Device is diskless, the requested operation requires a disk",
    -12: "Device is held open by someone",
    -13: "Have no net/connection configuration",
    -14: "Need a verify algorithm to start online verify",
    -15: "State change requires a connection",
    -16: "Disk state is lower than outdated",
    -18: "In transient state, retry after next state change",
    -19: "Concurrent state changes detected and aborted",
    -22: "Peer may not become primary while device is opened read-only",
    -23: "Timeout in operation",
    -24: "Primary nodes must be strongly connected among each other",
    -25: "No quorum",
    -26: "Intentional diskless peer may not attach a disk",
}

_STATE_EXIT: Final = {-2: 17, -4: 16, -16: 5}


class Refusal(Exception):
    """The kernel declines a request: `code` is 1xx for a configuration error, negative for a state change."""

    def __init__(self, code: int, *info: str) -> None:
        super().__init__(code, *info)
        self.code = code
        self.info = info

    def with_info(self, *info: str) -> Refusal:
        return Refusal(self.code, *self.info, *info)


def compute_result(subject: str, refusal: Refusal) -> Result:
    """The exit code and stderr of `drbdsetup` for a refused request about `subject` (a resource or a minor)."""
    if refusal.code < 0:
        text = f"{subject}: State change failed: ({refusal.code}) {STATE_CHANGE[refusal.code]}\n"
        exit_code = _STATE_EXIT.get(refusal.code, 11)
    else:
        text = f"{subject}: Failure: ({refusal.code}) {CONFIGURATION[refusal.code]}\n"
        exit_code = 10
    if refusal.info:
        text += "additional info from kernel:\n" + "".join(f"{line}\n" for line in refusal.info)
    return Result(exit_code, "", text)
