# requires: optimum transformers
import optimum
from optimum.exporters import TasksManager
from optimum.utils import NormalizedConfigManager

print(optimum, TasksManager, NormalizedConfigManager)
