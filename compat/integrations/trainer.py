"""A callback for transformers and trl trainers, which have every argument of the job.

>>> from compat.integrations.trainer import CompatCallback  # doctest: +SKIP
>>> trainer = SFTTrainer(..., callbacks=[CompatCallback(fail_on="error")])  # doctest: +SKIP

It checks once, on rank 0, when the trainer is created: after the model is loaded, before the first step.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from transformers import TrainerCallback

from compat.integrations.guard import check_workload
from compat.model import Report, Workload
from compat.records import replace
from compat.workload.arguments import apply_all
from compat.workload.draft import Draft
from compat.workload.launch import from_variables, merge_workloads
from compat.workload.trainers import trainer_of

_ARGUMENTS = "the trainer's arguments"
_MODEL = "the trainer's model"


class CompatCallback(TrainerCallback):  # type: ignore[misc]
    """Prints the certain findings about this training; ``fail_on`` raises :class:`compat.KnownBad` at or above that level.

    ``report`` is the :class:`compat.model.Report`; ``None`` until the trainer is created, and on ranks other than 0.
    """

    def __init__(self, fail_on: str | None = None) -> None:
        self.fail_on = fail_on
        self.report: Report | None = None

    def on_init_end(self, args: object, state: object, control: object, **kwargs: object) -> None:
        self.report = check_workload(workload_of(args, kwargs.get("model")), self.fail_on)


def workload_of(args: Any, model: Any = None) -> Workload:
    """Derive the workload from a ``TrainingArguments`` or trl config and the model."""
    draft = Draft()
    values = {field.name: getattr(args, field.name) for field in dataclasses.fields(args) if hasattr(args, field.name)}
    # transformers has read the file and replaced its "auto" values
    settings = getattr(getattr(args, "hf_deepspeed_config", None), "config", None)
    apply_all(draft, {**values, "deepspeed": settings or values.get("deepspeed")}, _ARGUMENTS)
    kind = type(args)
    trainer = trainer_of(f"{kind.__module__}.{kind.__name__.removesuffix('Config')}Trainer")
    if trainer is not None:
        draft.record("trainer", trainer[0], _ARGUMENTS)
        draft.record("task", trainer[1], _ARGUMENTS)
    draft.record("processes", int(getattr(args, "world_size", 1)), _ARGUMENTS)
    if model is not None:
        _model_facts(draft, model)
    stated = draft.workload()
    launched = from_variables(os.environ)
    if launched.launcher is None and stated.processes == 1:
        stated = replace(stated, launcher="python")
    return merge_workloads(stated, launched)


def _model_facts(draft: Draft, model: object) -> None:
    config = getattr(model, "config", None)
    kind = getattr(config, "model_type", None)
    if isinstance(kind, str) and kind:
        draft.record("model", kind, _MODEL)
    draft.feature("peft", hasattr(model, "peft_config"), _MODEL)
    for bits in (4, 8):
        if getattr(model, f"is_loaded_in_{bits}bit", False):
            draft.record("quantization", f"{bits}bit", _MODEL)
