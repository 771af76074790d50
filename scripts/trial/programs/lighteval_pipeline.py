# requires: lighteval
import lighteval
from lighteval.logging.evaluation_tracker import EvaluationTracker
from lighteval.pipeline import ParallelismManager, Pipeline, PipelineParameters

print(PipelineParameters(launcher_type=ParallelismManager.ACCELERATE), EvaluationTracker, Pipeline)
