/*
 * Three benchmarks of google/benchmark that share a pool of nodes. `scatter`
 * returns its nodes to the pool in random order, so nodes that are taken
 * afterward are scattered over the memory.
 */
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>
#include <vector>

struct Node {
	Node *next;
	char data[120];
};

static const size_t NODES = 1 << 16; /* 8 MiB: more than the private caches of a core */
static Node *free_nodes;

static Node *take()
{
	Node *node = free_nodes;

	free_nodes = node->next;
	return node;
}

static void give(Node *node)
{
	node->next = free_nodes;
	free_nodes = node;
}

static void fill_pool()
{
	static std::vector<Node> all(NODES);

	for (size_t i = NODES; i-- > 0;)
		give(&all[i]);
}

static void scatter(benchmark::State &state)
{
	std::vector<Node *> nodes(NODES);

	for (auto &node : nodes)
		node = take();
	std::shuffle(nodes.begin(), nodes.end(), std::mt19937(1));
	for (Node *node : nodes)
		give(node);
	for (auto _ : state)
		give(take());
}

/* Takes the nodes, walks over them repeatedly, and returns them in the same order. */
static void walk(benchmark::State &state)
{
	std::vector<Node *> nodes(NODES);

	for (auto &node : nodes)
		node = take();
	for (size_t i = 0; i < NODES; i++)
		nodes[i]->next = i + 1 < NODES ? nodes[i + 1] : nullptr;
	for (auto _ : state)
		for (Node *node = nodes[0]; node; node = node->next)
			benchmark::DoNotOptimize(node->data[0]);
	for (size_t i = NODES; i-- > 0;)
		give(nodes[i]);
}

static void count(benchmark::State &state)
{
	for (auto _ : state)
		for (int i = 0; i < state.range(0); i++)
			benchmark::DoNotOptimize(i);
}

BENCHMARK(count)->Arg(500)->Name("count: (plain) [x]");
BENCHMARK(scatter);
BENCHMARK(walk);
BENCHMARK(count)->Arg(1000);

int main(int argc, char **argv)
{
	fill_pool();
	benchmark::Initialize(&argc, argv);
	benchmark::RunSpecifiedBenchmarks();
}
