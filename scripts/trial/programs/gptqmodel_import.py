# requires: gptqmodel
from gptqmodel import GPTQModel, QuantizeConfig

print(QuantizeConfig(bits=4, group_size=128), GPTQModel)
