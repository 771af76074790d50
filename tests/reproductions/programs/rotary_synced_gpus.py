"""generate() on two processes that are kept in step while one of them finishes first. To be run by torchrun with 2.

Shows "The size of tensor a (13) must match the size of tensor b (14)": with synced_gpus and no usable key-value cache,
the attention mask of the rank that has finished still grows by one a step while its tokens do not, so that the rotary
embedding is one position longer than the query.

Real: transformers' generate(), a Qwen2 model in train mode, torch.distributed over gloo.
Emulated: ZeRO-3 and FSDP are not used; under them generate() sets synced_gpus=True by itself, here it is passed. A logits
processor makes rank 0 finish after two tokens.
"""

from __future__ import annotations

import argparse

import tiny
import torch
import torch.distributed
from outcome import report_and_leave
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList

PROMPT = 10  # tokens
PADDED = 4  # of these, in the shorter prompt
ANY_WORD = 5


class EndAfter(LogitsProcessor):  # type: ignore[misc, unused-ignore]
    """Forces the end of the text after `tokens` new tokens, and a word before; None never ends."""

    def __init__(self, tokens: int | None) -> None:
        self.tokens = tokens

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        ended = self.tokens is not None and input_ids.shape[1] - PROMPT >= self.tokens
        forced = torch.full_like(scores, -torch.inf)
        forced[:, tiny.SPECIAL["<eos>"] if ended else ANY_WORD] = 0
        return forced


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument(
        "--cache",
        choices=("default", "off", "off-in-config"),
        default="default",
        help="off: use_cache=False for this call; off-in-config: use_cache=False when the model was made",
    )
    options.add_argument("--gradient-checkpointing", action="store_true")
    options.add_argument("--out-of-step", action="store_true", help="the control: synced_gpus=False")
    options.add_argument("--padding", action="store_true", help="prompts of different length, padded on the left")
    given = options.parse_args()

    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    torch.manual_seed(0)
    model = tiny.qwen2(**({"use_cache": False} if given.cache == "off-in-config" else {})).train()
    if given.gradient_checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    wanted = GenerationConfig(
        max_new_tokens=8,
        do_sample=True,
        pad_token_id=tiny.SPECIAL["<pad>"],
        eos_token_id=tiny.SPECIAL["<eos>"],
        **({"use_cache": False} if given.cache == "off" else {}),
    )
    prompt = torch.randint(len(tiny.SPECIAL), 50, (2, PROMPT))
    attention_mask = torch.ones_like(prompt)
    if given.padding:
        prompt[0, :PADDED] = tiny.SPECIAL["<pad>"]
        attention_mask[0, :PADDED] = 0
    try:
        with torch.no_grad():
            made = model.generate(
                prompt,
                attention_mask=attention_mask,
                generation_config=wanted,
                logits_processor=LogitsProcessorList([EndAfter(2 if rank == 0 else None)]),
                synced_gpus=not given.out_of_step,
            )
    except Exception as error:
        if rank == 0:
            report_and_leave("error", error)
        raise
    if rank == 0:
        report_and_leave("ok", shape=list(made.shape))


if __name__ == "__main__":
    main()
