// All that decides and talks to nodes, in one translation unit: run.py compiles it with a mistake built in,
// and the linker takes it in place of what the libraries have. The simulation's own files are here because
// code of headers is compiled into them.
#include "lock.cpp"
#include "redis/connection.cpp"
#include "redis/node.cpp"
#include "redis/node_group.cpp"
#include "redis/round_driver.cpp"
#include "semaphore.cpp"

#include "../sim/client.cpp"
#include "../sim/sim_nodes.cpp"
