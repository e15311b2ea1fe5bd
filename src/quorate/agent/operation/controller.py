"""The DRBDResourceOperation controller of a node."""

from __future__ import annotations

from quorate.agent.operation.decide import OperationSnapshot, decide, gather
from quorate.agent.operation.execute import OperationAnswers
from quorate.api.drbd_resource import DRBDResource
from quorate.api.drbd_resource_operation import DRBDResourceOperation, Phase
from quorate.machinery.controller import ControllerSpec, for_
from quorate.machinery.reader import Reader

NAME = "drbdrop-controller"


def spec(node_name: str, answers: OperationAnswers) -> ControllerSpec[OperationSnapshot]:
    """The controller for one node."""

    def concerns_us(old: DRBDResourceOperation | None, new: DRBDResourceOperation | None) -> bool:
        del old
        return new is not None and new.spec.node_name == node_name and new.status.phase not in Phase.TERMINAL

    def gather_one(reader: Reader, key: str) -> OperationSnapshot:
        return gather(reader, key, node_name=node_name)

    return ControllerSpec(
        name=NAME,
        watches=(for_(DRBDResourceOperation, concerns_us),),
        gather=gather_one,
        decide=decide,
        answer=answers.answer,
        concurrency=5,
        reads=(DRBDResource,),
    )
