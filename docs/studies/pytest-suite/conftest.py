"""Skip pytest-benchmark's description of the processor and of the Git commit, which takes longer than the tests."""


def pytest_benchmark_generate_machine_info():
    return {}


def pytest_benchmark_generate_commit_info():
    return {"id": "not asked for"}
