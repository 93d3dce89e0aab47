// A holder was paused for longer than its ttl. Who keeps it from overwriting what the next holder wrote?
//
// Not the lock: the store has to, by the fencing tokens that the lock hands out. Run it by
// build/release/examples/fenced_store/fenced_store: it starts five redis-servers and two holders, in
// processes of their own, makes the accident happen without fencing and with it, and exits with status 0 only
// if an update was lost without, and none with it.
#include "holder_process.hpp"
#include "race.hpp"

#include "support/cluster.hpp"

#include <exception>
#include <iostream>
#include <string>
#include <vector>

namespace {

using namespace fenced_store;
using redlock::support::Cluster;

/// Without fencing: B's deposit is gone, though B was told that it held the lock, and did.
bool lost(Race& race) {
    return race.balance() == Race::before + Race::deposit_of_a && !race.anything_refused();
}

/// With fencing: A's late write was refused, and A has done its work anew.
bool saved(Race& race) {
    return race.balance() == Race::before + Race::deposit_of_a + Race::deposit_of_b &&
           race.anything_refused();
}

int demonstrate() {
    std::cout << "Five independent redis-servers start on 127.0.0.1, ports";
    Cluster nodes;
    for (const auto& node : nodes) std::cout << ' ' << node.port();
    std::cout << "\nThe balance of " << account << " is " << Race::before << ". A adds " << Race::deposit_of_a
              << ", B adds " << Race::deposit_of_b << ", each under a lock of " << ttl.count() << " ms.\n";

    std::cout << "\nPart 1: the store takes every write." << std::endl;
    Race unfenced{nodes, Writing::unfenced};
    unfenced.run();

    std::cout << "\nPart 2: the store refuses tokens older than the newest it has seen." << std::endl;
    Race fenced{nodes, Writing::fenced};
    fenced.run();

    const bool as_promised = lost(unfenced) && saved(fenced);
    std::cout << (as_promised ? "\nB's deposit was lost without fencing, and nothing was with it.\n"
                              : "\nNOT as promised.\n");
    return as_promised ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
    const std::vector<std::string> words{argv + 1, argv + argc};
    if (words.size() == 6 && words[0] == "holder") {
        hold(words);
        return 0;
    }
    return demonstrate();
} catch (const std::exception& error) {
    std::cerr << "fenced_store: " << error.what() << '\n';
    return 2;
}
