"""Tracebacks of notebooks, and fragments of tracebacks that were copied."""

from __future__ import annotations

import pytest

from compat.reports.log.traceback import Frame, parse_log
from tests.reports.log.samples import PLAIN, PLAIN_FRAMES, only, prefixed, summary

NOTEBOOK = """\
---------------------------------------------------------------------------
RuntimeError                              Traceback (most recent call last)
Cell In[5], line 2
      1 model = make()
----> 2 trainer.train()

File /site-packages/transformers/trainer.py:2245, in Trainer.train(self, resume_from_checkpoint, **kwargs)
   2243     hf_hub_utils.enable_progress_bars()
   2244 else:
-> 2245     return inner_training_loop(
   2246         args=args,
   2247     )

File ~/proj/x.py:12
     11 a = 1
---> 12 b(a)

RuntimeError: Numpy is not available
"""
NOTEBOOK_FRAMES = (
    Frame("In[5]", 2, None, "trainer.train()"),
    Frame("/site-packages/transformers/trainer.py", 2245, "Trainer.train", "return inner_training_loop("),
    Frame("~/proj/x.py", 12, None, "b(a)"),
)


class TestNotebooks:
    def test_jupyter(self):
        error = only(NOTEBOOK)
        assert (error.exception, error.message, error.frames) == ("RuntimeError", "Numpy is not available", NOTEBOOK_FRAMES)
        assert error.line == 18

    def test_coloured_quoted_and_after_another(self):
        assert only(NOTEBOOK.replace("RuntimeError", "\x1b[0;31mRuntimeError\x1b[0m")).frames == NOTEBOOK_FRAMES
        assert only(prefixed("> ", NOTEBOOK)).frames == NOTEBOOK_FRAMES
        assert len(parse_log(NOTEBOOK + NOTEBOOK.replace("Numpy", "Torch"))) == 2

    def test_frames_without_the_word_file(self):
        path = ".venv\\Lib\\site-packages\\transformers\\trainer.py"
        error = only(
            f"{path}:2245, in Trainer.train(self, resume_from_checkpoint, **kwargs)\n"
            "   2243     hf_hub_utils.enable_progress_bars()\n-> 2245     return inner_training_loop(\n   2246         args=args,\n"
            "\nRuntimeError: Numpy is not available\n"
        )
        assert error.frames == (Frame(path, 2245, "Trainer.train", "return inner_training_loop("),)

    def test_chain(self):
        text = (
            NOTEBOOK + "\nThe above exception was the direct cause of the following exception:\n\n" + NOTEBOOK.split("\n", 1)[1]
        )
        assert [error.cause for error in parse_log(text)] == [None, 0]

    def test_an_older_frame_alone(self):
        error = only(
            "/usr/lib/python3.10/dist-packages/unsloth/kernels/loss.py in forward(self, x)\n\nNameError: name 'x' is bad\n"
        )
        assert error.frames == (Frame("/usr/lib/python3.10/dist-packages/unsloth/kernels/loss.py", None, "forward", None),)

    def test_an_older_frame_of_a_module_alone(self):
        error = only("/usr/lib/python3.10/dist-packages/awq/model.py in <module>\n----> 5 import x\n\nImportError: x is bad\n")
        assert error.frames == (Frame("/usr/lib/python3.10/dist-packages/awq/model.py", 5, "<module>", "import x"),)

    def test_older_forms_and_colab(self):
        error = only(
            "RuntimeErrorTraceback (most recent call last)\n"
            "<ipython-input-5-0123abc> in <module>\n"
            "----> 1 train()\n"
            "\n"
            "/usr/lib/python3.10/site-packages/torch/x.py in forward(self, x)\n"
            "     11         y = x\n"
            "---> 12         return y @ w\n"
            "     13 \n"
            "\n"
            "RuntimeError: mat1 and mat2\n"
        )
        assert error.frames == (
            Frame("<ipython-input-5-0123abc>", 1, "<module>", "train()"),
            Frame("/usr/lib/python3.10/site-packages/torch/x.py", 12, "forward", "return y @ w"),
        )
        colab = only(
            "8 frames\n"
            "[/usr/local/lib/python3.11/dist-packages/vllm/utils.py](https://localhost:8080/#) in inner(*args, **kwargs)\n"
            "   1159 )\n"
            "-> 1161             return fn(*args, **kwargs)\n"
            "\n"
            "RuntimeError: Engine core initialization failed. See root cause above.\n"
        )
        assert colab.frames == (
            Frame("/usr/local/lib/python3.11/dist-packages/vllm/utils.py", 1161, "inner", "return fn(*args, **kwargs)"),
        )

    def test_syntax_error_and_missing_module(self):
        error = only("  Cell In[1], line 1\n    def x(:\n          ^\nSyntaxError: invalid syntax\n")
        assert error.exception == "SyntaxError"
        text = (
            "ModuleNotFoundError                       Traceback (most recent call last)\n"
            "Cell In[1], line 1\n----> 1 import nothere\n\nModuleNotFoundError: No module named 'nothere'\n"
        )
        assert only(text).frames == (Frame("In[1]", 1, None, "import nothere"),)

    def test_rich(self):
        error = only(
            "╭─────────────── Traceback (most recent call last) ────────────────╮\n"
            "│ /home/me/train.py:12 in <module>                                 │\n"
            "│                                                                  │\n"
            "│    11 │                                                          │\n"
            "│ ❱  12 │   main()                                                 │\n"
            "│                                                                  │\n"
            "│ /home/me/a/very/long/path/that/does/not/fit/into/the/box/and/is/ │\n"
            "│ wrapped/model.py:7 in forward                                    │\n"
            "│                                                                  │\n"
            "│ ❱   7 │   │   return x @ w                                       │\n"
            "╰──────────────────────────────────────────────────────────────────╯\n"
            "RuntimeError: mat1 and mat2 shapes cannot be multiplied\n"
        )
        assert (error.exception, error.message) == ("RuntimeError", "mat1 and mat2 shapes cannot be multiplied")
        assert error.frames == (
            Frame("/home/me/train.py", 12, "<module>", "main()"),
            Frame(
                "/home/me/a/very/long/path/that/does/not/fit/into/the/box/and/is/wrapped/model.py", 7, "forward", "return x @ w"
            ),
        )

    def test_pytest(self):
        error = only(
            "    def test_x():\n>       f()\n\ntests/test_x.py:3: \n_ _ _ _ _\nx.py:12: in f\n    g(1)\nE   ValueError: no\nE     at all\n\n"
            "x.py:13: ValueError\n"
        )
        assert (error.exception, error.frames) == ("ValueError", (Frame("x.py", 12, "f", "g(1)"),))
        assert error.message.split() == ["no", "at", "all"]


class TestFragments:
    @pytest.mark.parametrize(
        ("above", "frame"),
        [
            (
                "accelerate/utils/deepspeed.py map_optim: is_adaw = isinstance(optimizer, (A, B)) and optimizer.optim_bits == 32",
                Frame(
                    "accelerate/utils/deepspeed.py",
                    None,
                    "map_optim",
                    "is_adaw = isinstance(optimizer, (A, B)) and optimizer.optim_bits == 32",
                ),
            ),
            (
                "deepspeed/runtime/engine.py line 1995 no_sync: assert not x",
                Frame("deepspeed/runtime/engine.py", 1995, "no_sync", "assert not x"),
            ),
            (
                "peft/peft_model.py line 37: from transformers import Cache",
                Frame("peft/peft_model.py", 37, None, "from transformers import Cache"),
            ),
            ("datasets/builder.py as_dataset", Frame("datasets/builder.py", None, "as_dataset", None)),
            ("datasets/builder.py line 1089 as_dataset", Frame("datasets/builder.py", 1089, "as_dataset", None)),
            ("trl/trainer.py __init__: super().__init__(", Frame("trl/trainer.py", None, "__init__", "super().__init__(")),
            (
                '  File ".../vllm/tokenizer.py", line 99, in get\n    tokenizer.extended)',
                Frame(".../vllm/tokenizer.py", 99, "get", "tokenizer.extended)"),
            ),
            ("    from vllm import cuda_utils", Frame("", None, None, "from vllm import cuda_utils")),
            ("if v not in STYLES:", Frame("", None, None, "if v not in STYLES:")),
        ],
    )
    def test_what_stands_above_the_exception(self, above, frame):
        error = only(f"{above}\nTypeError: argument of type 'NoneType' is not iterable")
        assert (error.exception, error.frames) == ("TypeError", (frame,))

    def test_prose_above_is_no_frame(self):
        assert only("It says this in train.py now.\nTypeError: no\n").frames == ()
        assert only("/x/y.py:12: UserWarning: old\nTypeError: no\n").frames == ()

    def test_only_the_last_line(self):
        assert summary("[rank3]: RuntimeError: no multi GPU") == [("RuntimeError", "no multi GPU")]
        assert parse_log("[rank3]: RuntimeError: no multi GPU")[0].rank == 3

    def test_only_frames(self):
        error = only("".join(PLAIN.splitlines(keepends=True)[1:-1]))
        assert (error.exception, error.message, error.frames, error.line) == (None, "", PLAIN_FRAMES, 5)

    def test_mentioned_in_a_sentence(self):
        assert summary("I get `ImportError: cannot import name 'x' from 'y'`") == [
            ("ImportError", "cannot import name 'x' from 'y'")
        ]
        found = summary(
            "triton.compiler.errors.CompilationError ... AttributeError(\"'tensor' object has no attribute 'cast'\")"
        )
        assert [name for name, _ in found] == ["triton.compiler.errors.CompilationError", "AttributeError"]

    def test_a_single_complaint(self):
        assert summary("FlashInfer requires GPUs with sm75 or higher") == [
            (None, "FlashInfer requires GPUs with sm75 or higher")
        ]
        assert summary("hello world\nall is well\n") == []
        assert summary("this failed\n" * 500) == []

    @pytest.mark.parametrize(
        "line",
        [
            "- Accelerate config: not found",
            "CUDA runtime version         : Could not collect",
            "| N/A   40C    P8              4W /  N/A  | Not Supported          |      1%      Default |",
            "Requires: torch, transformers",
        ],
    )
    def test_what_a_description_of_the_machine_lacks_is_no_complaint(self, line):
        assert summary(f"The answers are wrong.\n\n{line}\n") == []
        assert summary(f"The server crashed.\n\n{line}\n") == [(None, "The server crashed.")]

    def test_what_a_shell_says_is_a_complaint(self):
        assert summary("nvcc: not found") == [(None, "nvcc: not found")]
        assert summary("Failed to load the kernel: unavailable") == [(None, "Failed to load the kernel: unavailable")]

    def test_long_logs_of_success(self):
        assert (
            parse_log("INFO 01-02 12:00:00 [x.py:1] RuntimeError: none so far\n{'loss': 0.1, 'error_rate': 0.0}\n" * 300) == ()
        )
