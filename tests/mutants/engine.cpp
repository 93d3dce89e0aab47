// The decision code and the code that talks to nodes, in one translation unit. run.py compiles it with a
// mutant built in, and the linker uses it instead of the objects in the libraries. The two files of the
// simulation are here because code of the headers is compiled into them.
#include "flow/acquire.cpp"
#include "flow/attempt.cpp"
#include "flow/lease.cpp"
#include "flow/place_in_queue.cpp"
#include "flow/retries.cpp"
#include "lock.cpp"
#include "redis/connection.cpp"
#include "redis/node.cpp"
#include "redis/node_group.cpp"
#include "redis/node_own.cpp"
#include "redis/round_driver.cpp"
#include "semaphore.cpp"

#include "../sim/client.cpp"
#include "../sim/sim_nodes.cpp"
