# requires: ray
import ray


@ray.remote
def double(number):
    return 2 * number


ray.init(num_cpus=1, include_dashboard=False)
print(ray.get(double.remote(2)))
