#!/bin/sh
# sh tests/model/run.sh [VARIANT...]: checks the models with spin. Without arguments it checks all variants, one on each
# processor.
#
#     sh tests/model/run.sh                      one line for each; fails if a result is not as expected
#     sh tests/model/run.sh quorum-half          one variant, with its counterexample
#
# It reports `safe` only if spin has searched the whole state space to its end, without hashing. For an unsafe variant
# it finds a shortest counterexample, because the search is breadth-first. README.md in this directory describes the
# models.
set -eu
unset CDPATH
cd -- "$(dirname -- "$0")/../.."
models=$PWD/tests/model
seconds=300  # of one search
memory=3500  # MiB of one search
if ! command -v spin >/dev/null || ! command -v gcc >/dev/null; then sh cmake/install-packages.sh model; fi

if [ $# -eq 0 ]; then
    sed -n 's/^check \([^ ]*\) .*/\1/p' tests/model/run.sh |
        xargs -P "$(getconf _NPROCESSORS_ONLN)" -n 1 env redlock_model_in_a_line=yes sh tests/model/run.sh |
        awk -v all="$(grep -c '^check ' tests/model/run.sh)" '
            { print; fflush() }
            / found / && !/not as expected$/ { good++ }
            END { print NR " checked, " all - good " not as expected"; exit good != all }'
    exit
fi
in_a_line=${redlock_model_in_a_line:-}

wanted=" $* "
checked=0
failed=0

# check VARIANT safe|unsafe MODEL [-DMACRO...]
check() {
    variant=$1
    expected=$2
    model=$3
    shift 3
    case $wanted in
    *" $variant "*) ;;
    *) return 0 ;;
    esac
    checked=$((checked + 1))
    work=build/model/$variant
    rm -rf "$work"
    mkdir -p "$work"
    start=$(date +%s)
    # A complete search is depth-first, which needs less memory.
    by=
    [ "$expected" = safe ] || by=-DBFS
    result=broken
    if (
        cd "$work"
        # shellcheck disable=SC3045  # dash and bash have ulimit -v; elsewhere pan itself limits its memory
        ulimit -v $((memory * 1024 + 500000)) || true
        spin "$@" -a "$models/$model.pml" >spin.log 2>&1 &&
            gcc -O2 -w -DSAFETY -DNOREDUCE -DMEMLIM=$memory $by -o pan pan.c >gcc.log 2>&1 &&
            timeout $seconds ./pan -E -m100000 -w24 >pan.log 2>&1
    ); then
        result=$(verdict "$work/pan.log")
        # A search for cycles takes twice the memory, so the largest variants of lanes.pml have none.
        case "$result-$model $*" in safe-shared_* | safe-lanes*BREAKS*) has_no_cycle || result=cycle ;; esac
    elif [ -f "$work/pan.log" ]; then
        result=unfinished
    fi
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$work/pan.log" 2>/dev/null) || states=
    mark=
    if [ "$result" != "$expected" ]; then
        failed=$((failed + 1))
        mark='  <- not as expected'
    fi
    printf '%-28s expected %-6s  found %-10s %9s states %4d s%s\n' "$variant" "$expected" "$result" "${states:--}" \
        "$(($(date +%s) - start))" "$mark"
    if [ -z "$in_a_line" ] && [ -f "$work/$model.pml.trail" ]; then
        (cd "$work" && spin "$@" -B -k "$model.pml.trail" -t "$models/$model.pml" | sed '/^spin: trail ends/,$d')
    fi
    rm -f "$work"/pan.? "$work/pan"
}

# Returns true if the graph of the states has no cycle, so that each request makes progress until nothing can happen.
has_no_cycle() {
    (
        cd "$work"
        # shellcheck disable=SC3045  # as above
        ulimit -v $((memory * 1024 + 500000)) || true
        gcc -O2 -w -DNP -DNOREDUCE -DMEMLIM=$memory -o pan pan.c >gcc.log 2>&1 &&
            timeout $seconds ./pan -l -E -m100000 -w24 >cycle.log 2>&1
    ) && [ "$(verdict "$work/cycle.log")" = safe ]
}

# Prints the result in the log of a search: safe, unsafe or unfinished.
verdict() {
    if grep -qE 'assertion violated|^pan.*: non-progress cycle' "$1"; then
        echo unsafe
    elif grep -q '^Full statespace search' "$1" && grep -q 'errors: 0$' "$1" &&
        ! grep -qiE 'not completed|too small|out of memory|reached.*limit|truncat' "$1"; then
        echo safe
    else
        echo unfinished
    fi
}

# A witness asserts something false about a safe variant, to show that the search reaches the state in question.

# Checks whether two clients can hold at once, or another client can acquire within an extended validity.
check plain safe exclusion -DCLIENTS=3
check plain-remember safe exclusion -DCLIENTS=3 -DREMEMBER
check quarantine safe exclusion -DCLIENTS=3 -DLOSSES=3 -DQUARANTINE
check extend-quarantine safe exclusion -DEXTEND -DLOSSES=3 -DQUARANTINE
check extend-remember safe exclusion -DEXTEND -DREMEMBER
check no-quarantine unsafe exclusion -DLOSSES=1
check quorum-half unsafe exclusion -DQUORUM_HALF
check one-owner unsafe exclusion -DCLIENTS=3 -DONE_OWNER
check release-does-not-compare unsafe exclusion -DCLIENTS=3 -DRELEASE_DOES_NOT_COMPARE
check late-confirmation unsafe exclusion -DEXTEND -DLATE_CONFIRMATION
check extend-shortens unsafe exclusion -DEXTEND -DEXTEND_SHORTENS
check extend-makes-keys unsafe exclusion -DEXTEND -DEXTEND_MAKES_KEYS -DLOSSES=1 -DQUARANTINE
check extend-witness unsafe exclusion -DEXTEND -DLOSSES=2 -DQUARANTINE -DWITNESS

# The same with readers, which may hold the lock together.
check sharing safe exclusion -DSHARING -DCLIENTS=3
check sharing-quarantine safe exclusion -DSHARING -DCLIENTS=3 -DLOSSES=1 -DQUARANTINE
check sharing-extend-quarantine safe exclusion -DSHARING -DEXTEND -DLOSSES=1 -DQUARANTINE
check one-expiry unsafe exclusion -DSHARING -DCLIENTS=3 -DONE_EXPIRY
check exclusive-ignores-readers unsafe exclusion -DSHARING -DEXCLUSIVE_IGNORES_READERS
check release-deletes-the-marker unsafe exclusion -DSHARING -DCLIENTS=3 -DRELEASE_DELETES_THE_MARKER
check leave-does-not-compare unsafe exclusion -DSHARING -DCLIENTS=3 -DLEAVE_DOES_NOT_COMPARE
check stay-makes-the-marker unsafe exclusion -DSHARING -DEXTEND -DLOSSES=1 -DQUARANTINE -DSTAY_MAKES_THE_MARKER

# The same with clients that wait, whatever the state of their queue.
check waiting safe exclusion -DWAITING -DCLIENTS=3
check waiting-remember safe exclusion -DWAITING -DREMEMBER
check waiting-quarantine safe exclusion -DWAITING -DCLIENTS=3 -DLOSSES=1 -DQUARANTINE
check waiting-tickets safe exclusion -DWAITING -DTICKETS -DEXTEND -DLOSSES=2 -DQUARANTINE
check waiting-extend-quarantine safe exclusion -DWAITING -DEXTEND -DLOSSES=1 -DQUARANTINE
check reservation-is-a-vote unsafe exclusion -DWAITING -DRESERVATION_IS_A_VOTE
check claim-keeps-reservation unsafe exclusion -DWAITING -DCLAIM_KEEPS_RESERVATION
check claim-does-not-compare unsafe exclusion -DWAITING -DCLAIM_DOES_NOT_COMPARE
check claim-shortens unsafe exclusion -DWAITING -DEXTEND -DCLAIM_SHORTENS
check claim-without-marker unsafe exclusion -DWAITING -DLOSSES=1 -DQUARANTINE -DCLAIM_WITHOUT_MARKER
check hand-over-does-not-compare unsafe exclusion -DWAITING -DCLIENTS=3 -DHAND_OVER_DOES_NOT_COMPARE
check hand-over-before-the-end unsafe exclusion -DWAITING -DRELEASE_BEFORE_THE_END
check wait-reserves-held unsafe exclusion -DWAITING -DWAIT_RESERVES_HELD
check waiting-one-owner unsafe exclusion -DWAITING -DCLIENTS=3 -DONE_OWNER
check validity-from-the-reply unsafe exclusion -DWAITING -DVALIDITY_FROM_THE_REPLY
check heir-witness unsafe exclusion -DWAITING -DREMEMBER -DHEIR_WITNESS
check expiry-witness unsafe exclusion -DWAITING -DEXPIRY_WITNESS

# Checks whether a later holder can have a fence that is not larger.
check fencing safe fencing
check fencing-remember safe fencing -DREMEMBER
check fencing-quarantine safe fencing -DLOSSES=2 -DQUARANTINE
check lying-node safe fencing -DLYING
check waiting-fencing safe fencing -DWAITING
check waiting-fencing-quarantine safe fencing -DWAITING -DLOSSES=1 -DQUARANTINE -DONE_START
check sharing-fencing safe fencing -DSHARING
check sharing-fencing-quarantine safe fencing -DSHARING -DREADERS=6 -DLOSSES=1 -DQUARANTINE -DONE_START
check sharing-no-round-two unsafe fencing -DSHARING -DNO_ROUND_TWO
check readers-among-themselves unsafe fencing -DSHARING -DREADERS_AMONG_THEMSELVES
check claim-does-not-count unsafe fencing -DWAITING -DCLAIM_DOES_NOT_COUNT
check raise-witness unsafe fencing -DWAITING -DRAISE_WITNESS
check fencing-no-quarantine unsafe fencing -DLOSSES=1
check no-round-two unsafe fencing -DNO_ROUND_TWO
check round-two-any-key unsafe fencing -DROUND_TWO_ANY_KEY
check round-two-without-quorum unsafe fencing -DROUND_TWO_WITHOUT_QUORUM
check round-two-makes-counters unsafe fencing -DROUND_TWO_MAKES_COUNTERS -DLOSSES=1 -DQUARANTINE -DONE_START
check release-makes-counters unsafe fencing -DRELEASE_MAKES_COUNTERS -DLOSSES=1 -DQUARANTINE -DONE_START
check counter-without-run unsafe fencing -DCOUNTER_WITHOUT_RUN -DLOSSES=1 -DQUARANTINE
check seed-zero unsafe fencing -DSEED_ZERO -DLOSSES=1 -DQUARANTINE
check lying-node-and-no-majority unsafe fencing -DLYING -DDISBELIEF_NEEDS_NO_MAJORITY
check lying-node-witness unsafe fencing -DLYING -DWITNESS
check fencing-witness unsafe fencing -DLOSSES=1 -DQUARANTINE -DWITNESS

# Nodes that fail over: checks whether two clients can hold at once, one on each side of a promotion.
check failover safe failover -DEXTEND -DPROMOTIONS=3 -DRESTARTS=1
check failover-three-clients safe failover -DCLIENTS=3
check failover-three-nodes safe failover -DNODES=3 -DPROMOTIONS=2
check failover-no-quarantine unsafe failover -DNO_QUARANTINE
check failover-marker-of-anybody unsafe failover -DMARKER_OF_ANYBODY
check failover-run-alone unsafe failover -DRUN_ALONE
check failover-replication-alone unsafe failover -DREPLICATION_ALONE -DPROMOTIONS=0 -DRESTARTS=1
check failover-no-bound unsafe failover -DNO_BOUND
check failover-idle-connection unsafe failover -DIDLE_CONNECTION
check failover-three-no-bound unsafe failover -DNODES=3 -DPROMOTIONS=2 -DNO_BOUND
check failover-three-run-alone unsafe failover -DNODES=3 -DPROMOTIONS=2 -DRUN_ALONE
check failover-three-idle-connection unsafe failover -DNODES=3 -DPROMOTIONS=2 -DIDLE_CONNECTION
check failover-witness unsafe failover -DWITNESS

# The same if many requests share a connection and wait in a queue.
check failover-queue safe failover -DQUEUE -DCLIENTS=3 -DPROMOTIONS=1
check failover-queue-extend safe failover -DQUEUE -DEXTEND
check failover-queue-checked-early safe failover -DQUEUE -DCHECKED_IN_QUEUE -DSTARTS_IN_QUEUE
check failover-behind-pending unsafe failover -DQUEUE -DBEHIND_PENDING
check failover-after-silence unsafe failover -DQUEUE -DCHECKED_IN_QUEUE
check failover-late-reply unsafe failover -DQUEUE -DLATE_REPLY_COUNTS
check failover-queue-witness unsafe failover -DQUEUE -DWITNESS
check failover-lanes safe failover -DQUEUE -DLANES=2 -DCLIENTS=3 -DPROMOTIONS=1
check failover-lanes-extend safe failover -DQUEUE -DLANES=2 -DEXTEND -DPROMOTIONS=1
check failover-sign-of-the-node unsafe failover -DQUEUE -DLANES=2 -DPROMOTIONS=1 -DSIGN_OF_THE_NODE

# Requests that share their connections to one node: the order of commands and the delivery of replies.
check connection safe shared_connection -DCONNECTIONS=3
check connection-three-requests safe shared_connection -DREQUESTS=3 -DNOSCRIPTS=0
check release-on-new-connection unsafe shared_connection -DRELEASE_ON_NEW_CONNECTION
check counted-as-not-sent unsafe shared_connection -DCOUNTED_AS_NOT_SENT
check entry-removed unsafe shared_connection -DENTRY_REMOVED
check entry-stays-alone unsafe shared_connection -DENTRY_STAYS_ALONE
check repeated-after-release unsafe shared_connection -DREPEATED_AFTER_RELEASE
check noscript-loses-release unsafe shared_connection -DNOSCRIPT_LOSES_RELEASE
check closed-early unsafe shared_connection -DCLOSED_EARLY
check releases-are-lost unsafe shared_connection -DRELEASES_ARE_LOST
check connection-witness unsafe shared_connection -DWITNESS

# Lanes, which are several sets of connections in one process: no key of a released owner is left.
check lanes safe lanes -DBREAKS=2
check lanes-copies safe lanes -DBREAKS=1 -DREPEATS=1
check lanes-at-once safe lanes -DBREAKS=1 -DALSO_AT_ONCE
check lanes-three-threads safe lanes -DOWNERS=3
check lanes-leader safe lanes -DLEADS -DBREAKS=1
check lanes-starved safe lanes -DSTARVES -DBREAKS=1
check lanes-leader-starved safe lanes -DSTARVES -DLEADS -DBREAKS=1
check lanes-sentinels safe lanes -DSENTINELS
check lanes-sentinels-breaks safe lanes -DSENTINELS -DOWNERS=1 -DBREAKS=2 -DREPEATS=1
check release-takes-any-lane unsafe lanes -DRELEASE_TAKES_ANY_LANE
check debt-on-another-lane unsafe lanes -DDEBT_ON_ANOTHER_LANE
check release-on-current unsafe lanes -DRELEASE_ON_CURRENT
check forgets-new-debts unsafe lanes -DFORGETS_NEW_DEBTS
check waits-for-the-lane unsafe lanes -DSTARVES -DWAITS_FOR_EVER
check bound-when-written unsafe lanes -DLEADS -DBOUND_WHEN_WRITTEN
check closes-lane unsafe lanes -DCLOSES_LANE
check compares-never unsafe lanes -DSENTINELS -DOWNERS=1 -DCOMPARES_NEVER
check compares-earlier unsafe lanes -DSENTINELS -DOWNERS=1 -DCOMPARES_EARLIER
check ignores-silence unsafe lanes -DSENTINELS -DOWNERS=1 -DIGNORES_SILENCE
check lanes-witness unsafe lanes -DBREAKS=1 -DWITNESS
check debt-witness unsafe lanes -DDEBT_WITNESS
check refused-witness unsafe lanes -DREFUSED_WITNESS
check promotion-witness unsafe lanes -DSENTINELS -DOWNERS=1 -DPROMOTION_WITNESS

# Threads that share a connection: one of them makes the rounds of all. Every round ends.
check reading safe shared_reading
check reading-two-threads safe shared_reading -DTHREADS=2
check no-successor unsafe shared_reading -DTHREADS=2 -DNO_SUCCESSOR
check forgets-the-inbox unsafe shared_reading -DTHREADS=2 -DFORGETS_THE_INBOX
check new-round-does-not-wake unsafe shared_reading -DTHREADS=2 -DNEW_ROUND_DOES_NOT_WAKE
check wake-up-reset-last unsafe shared_reading -DTHREADS=2 -DRESETS_LAST
check nobody-writes unsafe shared_reading -DTHREADS=2 -DNOBODY_WRITES
check leaves-the-buffer unsafe shared_reading -DTHREADS=2 -DLEAVES_THE_BUFFER
check leader-blocks unsafe shared_reading -DTHREADS=2 -DBLOCKS
check reading-starved safe shared_reading -DTHREADS=2 -DSTARVES
check sleeps-on unsafe shared_reading -DTHREADS=2 -DSTARVES -DSLEEPS_ON
check touches-the-frame unsafe shared_reading -DTHREADS=2 -DSTARVES -DTOUCHES_THE_FRAME
check begins-before-it-ends unsafe shared_reading -DTHREADS=2 -DSTARVES -DBEGINS_BEFORE_IT_ENDS
check forgets-left-releases unsafe shared_reading -DTHREADS=2 -DSTARVES -DFORGETS_LEFT_RELEASES
check names-one-that-left unsafe shared_reading -DTHREADS=2 -DSTARVES -DNAMES_ONE_THAT_LEFT
check leaves-without-waking unsafe shared_reading -DTHREADS=2 -DSTARVES -DLEAVES_WITHOUT_WAKING

if [ "$checked" -eq 0 ]; then
    echo "no such variant: $*" >&2
    exit 2
fi
[ -n "$in_a_line" ] || echo "$checked checked, $failed not as expected"
[ "$failed" -eq 0 ]
