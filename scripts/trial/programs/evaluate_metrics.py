# requires: evaluate scikit-learn
import evaluate
from evaluate import EvaluationModule, combine, load
from evaluate.visualization import radar_plot

print(evaluate.__version__, EvaluationModule, combine, load)
