// The ways in which a world can be made wrong on purpose: each a mistake that some implementation has made,
// or that the protocol warns of. All are at the seams; the code under test is the same in every world.
#pragma once

namespace redlock::sim {

struct Flaws {
    // Of the nodes, or of the scripts they run.
    bool raise_ignores_owner = false;    ///< the second fencing round counts where the key is not ours
    bool release_ignores_owner = false;  ///< a release deletes whatever key there is
    bool extend_ignores_owner = false;   ///< an extension counts a foreign key
    bool extend_makes_keys = false;      ///< an extension makes missing keys anew, also on a young node
    bool extend_shortens = false;        ///< an extension with a shorter ttl shortens keys
    bool counter_without_run = false;    ///< the counter is not named after the run of the server
    bool marker_without_run = false;     ///< the marker is not named after the run of the server
    bool set_without_expiry = false;     ///< the expiry is set by a second command, which does not come
    bool seed_zero = false;              ///< a missing counter begins at 0

    // Of the clients.
    bool quorum_half = false;          ///< N/2 grants are enough
    bool no_drift = false;             ///< drift_factor 0
    bool one_owner = false;            ///< all attempts of a client are signed alike
    bool no_second_round = false;      ///< the second fencing round is taken for granted
    bool no_quarantine = false;        ///< nodes that have lost their data vote at once
    bool steady_clock = false;         ///< the client's clock stands still while it is suspended
    bool wall_clock = false;           ///< the client's clock is the wall clock, which may be set
    bool release_to_granters = false;  ///< a release goes only where a grant was seen
    bool late_confirmation = false;    ///< an extension is accepted after the old validity has ended

    // Of their watchdogs.
    bool notice_late = false;           ///< a round of extensions goes on beyond the next notice
    bool extend_after_release = false;  ///< a release does not wait for the round of this moment
    bool commit_without_look = false;   ///< what counts is the end of the round, not when it is settled
    bool watch_for_ever = false;        ///< the longest hold is ignored
};

}  // namespace redlock::sim
