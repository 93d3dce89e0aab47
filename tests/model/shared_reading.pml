/* Threads that share a connection: one of them, the leader, makes the rounds of all.
 *
 * The property: every round ends. It ends when its reply was received, and also when its deadline has passed, even if
 * the server is silent from some time on. Also, each release is written in the end, even if no thread waits any more,
 * and no round stays in the inbox. These are the rules for the code (src/redis/shared_rounds.hpp):
 *
 * 1. A thread puts its round into the inbox. If nobody leads, it becomes the leader in the same section under the
 *    mutex. Otherwise it sleeps.
 * 2. If a round was the first in the inbox, and is still there after a bounded time, its thread wakes the leader.
 * 3. The leader alone uses the connection. In each turn, it takes the whole inbox, begins these rounds, and writes if
 *    that is permitted. It wakes the threads whose rounds are over. Then it polls without the mutex, delivers the
 *    replies, and ends the rounds whose deadlines have passed. It resets its wake-up before it takes the inbox.
 * 4. When the round of the leader is over, it names another thread whose round has begun as the leader, and wakes it.
 * 5. If there is no such thread, the leader writes the buffer, even behind pending replies. Then it looks into the
 *    inbox. In the same section under the mutex, it names a thread in the inbox as the leader, or leaves without a
 *    successor.
 * 6. A background task leads for a moment if nobody else does. It ends as in rule 5.
 *
 * A sleeping thread is woken exactly once: its round is over, or it has been named as the leader.
 *
 * Each thread makes a round for its SET. If this round ends without a reply although the SET was collected or written,
 * the thread makes a round for the release, which does not wait for a reply. A write to the socket never blocks, and
 * is complete in the model. With three threads, only thread 1 may have a deadline, and there is no background task.
 * The steps of the leader between two polls touch nothing that other threads use, apart from
 * the inbox, so each of them is atomic in the model.
 *
 * The server may be silent from any moment. As in shared_connection.pml, the graph of the states has no cycle, so
 * "every round ends" means that each state in which nothing can happen any more is as it should be. A search for
 * cycles shows this. Weak fairness needs nothing beyond that: every process goes on until it cannot. */

#ifndef THREADS
#define THREADS 3
#endif
#define NOBODY 255
#define TASK 254
#define bit(i) (1 << (i))

/* Sets of threads. */
byte inbox;     /* rounds that the leader has not begun */
byte begun;    /* rounds that the leader makes */
byte releasing; /* threads whose round is a release */
byte buffer;    /* SET commands that are collected */
byte releases;  /* releases that are collected */
byte pending;   /* SET commands that are written, and whose replies have not been read */
byte replies;   /* replies that have arrived and are not read */
byte decided;   /* rounds whose replies were delivered */
byte expired;   /* rounds that the leader has ended at their deadlines */
byte unsent;    /* rounds whose deadlines had passed before they began */
byte due;       /* rounds whose deadlines have passed */
byte over;      /* rounds that have ended */
byte sleeping;  /* threads */
byte posted;    /* threads that are woken */
byte ended;     /* threads that have returned for the last time */

byte leader = NOBODY;
byte step;      /* of the leader */
#define BEGINS 0
#define RESETS_LATE 1 /* in an unsafe variant only */
#define ENDS 2
#define POLLS 3
#define HANDS_OVER 4
#define RESIGNS 5
bool woken;     /* the wake-up of the leader */
bool flush_due; /* commands were collected for too long */
bool silent;    /* the server has stopped to reply */

/* The server cannot reply to a release in the model, because nobody waits for it. */
#define writes_all                                                                                                     \
    pending = pending | buffer;                                                                                        \
    buffer = 0;                                                                                                        \
    releases = 0;                                                                                                      \
    flush_due = false

#ifdef NOBODY_WRITES
#define WRITES_NOW (pending == 0)
#define FLUSH_ENDS_POLL false
#else
#define WRITES_NOW (pending == 0 || flush_due)
#define FLUSH_ENDS_POLL flush_due
#endif
#ifdef NO_SUCCESSOR
#define HAS_SUCCESSOR false
#else
#define HAS_SUCCESSOR (begun != 0)
#endif
#ifdef FORGETS_THE_INBOX
#define NAMES_FROM_INBOX false
#else
#define NAMES_FROM_INBOX (inbox != 0)
#endif
#ifdef LEAVES_THE_BUFFER
#define WRITE_AT_LEAVING skip
#else
#define WRITE_AT_LEAVING writes_all
#endif
#ifdef NEW_ROUND_DOES_NOT_WAKE
#define WAKES_LEADER false
#else
#define WAKES_LEADER true
#endif
#ifdef RESETS_LAST
#define RESET_FIRST skip
#define AFTER_BEGINNING RESETS_LATE
#else
#define RESET_FIRST woken = false
#define AFTER_BEGINNING ENDS
#endif

/* Names one thread of the set as the leader. */
#define name_one(set)                                                                                                  \
    step = BEGINS;                                                                                                     \
    if                                                                                                                 \
    :: (set) & bit(0) -> leader = 0; posted = posted | bit(0)                                                          \
    :: !((set) & bit(0)) && ((set) & bit(1)) -> leader = 1; posted = posted | bit(1)                                   \
    :: !((set) & (bit(0) | bit(1))) -> leader = 2; posted = posted | bit(2)                                            \
    fi
#define resign                                                                                                         \
    if                                                                                                                 \
    :: NAMES_FROM_INBOX -> name_one(inbox)                                                                             \
    :: else ->                                                                                                         \
        leader = NOBODY;                                                                                               \
        step = BEGINS                                                                                                  \
    fi
#define leads(t) (leader == (t) && !(sleeping & bit(t)))

proctype Thread(byte t) {
    bool first;
asks:
    skip;
    d_step { /* Rule 1. */
        printf("thread %d asks\n", t);
        first = (inbox == 0);
        inbox = inbox | bit(t);
        if
        :: leader == NOBODY -> leader = t
        :: else -> sleeping = sleeping | bit(t)
        fi
    }
    do
    :: d_step { /* Rule 2: the bounded time has passed. */
        WAKES_LEADER && first && (sleeping & bit(t)) && (inbox & bit(t)) ->
        printf("thread %d wakes the leader\n", t);
        first = false;
        woken = true
    }
    :: d_step {
        (sleeping & bit(t)) && (posted & bit(t)) ->
        sleeping = sleeping & ~bit(t);
        posted = posted & ~bit(t)
    }
    :: d_step { /* Rule 3. */
        leads(t) && step == BEGINS ->
        printf("thread %d begins new rounds\n", t);
        begun = begun | inbox;
        releases = releases | (inbox & releasing);
        expired = expired | (inbox & due & ~releasing);
        unsent = unsent | (inbox & due & ~releasing);
        buffer = buffer | (inbox & ~due & ~releasing);
        inbox = 0;
        if
        :: WRITES_NOW -> writes_all
        :: else
        fi;
        step = AFTER_BEGINNING
    }
#ifdef RESETS_LAST
    :: d_step {
        leads(t) && step == RESETS_LATE ->
        woken = false;
        step = ENDS
    }
#endif
    :: d_step {
        leads(t) && step == ENDS ->
        over = over | (begun & (decided | expired | releasing));
        begun = begun & ~over;
        posted = posted | (sleeping & over);
        if
        :: over & bit(t) -> step = HANDS_OVER
        :: else -> step = POLLS
        fi
    }
    :: d_step { /* The poll ends. */
        leads(t) && step == POLLS && (woken || replies != 0 || (begun & due) || FLUSH_ENDS_POLL) ->
        RESET_FIRST;
        decided = decided | (replies & begun);
        pending = pending & ~replies;
        replies = 0;
        expired = expired | (begun & due & ~decided);
        step = BEGINS
    }
    :: d_step { /* Rules 4 and 5. */
        leads(t) && step == HANDS_OVER ->
        if
        :: HAS_SUCCESSOR -> name_one(begun)
        :: else ->
            WRITE_AT_LEAVING;
            step = RESIGNS
        fi
    }
    :: d_step {
        leads(t) && step == RESIGNS ->
        printf("thread %d resigns\n", t);
        resign
    }
    :: (over & bit(t)) && !(sleeping & bit(t)) && leader != t -> break
    od;
    if
    :: d_step {
        (expired & bit(t)) && !(unsent & bit(t)) && !(releasing & bit(t)) ->
        printf("thread %d releases\n", t);
        releasing = releasing | bit(t);
        over = over & ~bit(t)
    }
        goto asks
    :: else
    fi;
    ended = ended | bit(t)
}

proctype Server() {
end:
    do
    :: !silent && (pending & ~replies & bit(0)) -> replies = replies | bit(0)
    :: !silent && (pending & ~replies & bit(1)) -> replies = replies | bit(1)
    :: !silent && (pending & ~replies & bit(2)) -> replies = replies | bit(2)
    :: !silent -> silent = true
    od
}

/* The deadline of a round passes, or never does. */
proctype Deadline(byte t) {
    if
    :: d_step {
        true ->
        printf("        the deadline of thread %d passes\n", t);
        due = due | bit(t)
    }
    :: true
    fi
}

/* Rule 6. The task runs once, or never. */
proctype Task() {
    if
    :: d_step {
        leader == NOBODY ->
        printf("        the task leads\n");
        leader = TASK
    }
        d_step {
            printf("        the task resigns\n");
            WRITE_AT_LEAVING;
            resign
        }
    :: true
    fi
}

/* The bounded time after which collected commands are written in any case. */
proctype FlushTimer() {
end:
    do
    :: d_step {
        (buffer | releases) != 0 && !flush_due ->
        printf("        commands have been collected for too long\n");
        flush_due = true
    }
    od
}

#define has_reason (due | replies | decided)
#define may_last(t) ((ended & bit(t)) || (silent && !(has_reason & bit(t))))
#if THREADS == 3
#define all_may_last (may_last(0) && may_last(1) && may_last(2))
#else
#define all_may_last (may_last(0) && may_last(1))
#endif
#define is_as_it_should_be (all_may_last && (buffer | releases) == 0 && inbox == 0)

init {
    atomic {
        run Server();
        run FlushTimer();
        run Deadline(1);
        run Thread(0);
        run Thread(1);
#if THREADS == 3
        run Thread(2)
#else
        run Deadline(0);
        run Task()
#endif
    }
    timeout -> /* Nothing can happen any more. */
    assert(is_as_it_should_be)
}
