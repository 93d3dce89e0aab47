/* Threads that share a connection: one of them, the leading thread, makes the rounds of all.
 *
 * The property: every round ends. It ends when its reply was received, and also when its deadline has passed, even if
 * the server is silent from some time on, and even if the leading thread gets no processor from some time on. Also,
 * each release is written in the end, even if no thread waits any more, and no SET is written behind its release. No
 * round stays in the inbox. Only a leading thread that never gets a processor again may leave releases behind. These
 * are the rules for the code (src/redis/lane.hpp):
 *
 * 1. A thread puts its round into the inbox. If nobody leads, it becomes the leading thread in the same section under
 *    the mutex. Otherwise it sleeps.
 * 2. If a round was the first in the inbox, and is still there after a bounded time, its thread wakes the leading
 *    thread.
 * 3. The leading thread alone uses the connection. In each pass, it takes the whole inbox, ends the rounds that were
 *    left (rule 7), begins the new rounds, and writes if that is permitted. It wakes the threads whose rounds are over.
 *    Then it polls without the mutex, delivers the replies, and ends the rounds whose deadlines have passed. It resets
 *    its wake-up before it takes the inbox.
 * 4. When the round of the leading thread is over, it names another thread whose round has begun as the leading thread,
 *    and wakes it.
 * 5. If there is no such thread, the leading thread writes the buffer, even behind pending replies. Then it looks into
 *    the inbox. In the same section under the mutex, it names a thread in the inbox as the leading thread, or leaves
 *    without a successor.
 * 6. A background task leads for a moment if nobody else does. It ends as in rule 5.
 * 7. A sleeping thread whose deadline has passed leaves its round, unless it has been woken. If the round is in the
 *    inbox and is no release, the thread takes it back, and nothing was sent. Otherwise the leading thread has the
 *    round from now on, and the thread does not know whether the command was sent. The leading thread touches nothing
 *    that ends with the call of the thread. It never names a thread that has left. The thread wakes the leading thread,
 *    because its release may be the first in the inbox.
 *
 * A sleeping thread is woken exactly once, unless it leaves: its round is over, or it has been named as the leading
 * thread.
 *
 * Each thread makes a round for its SET. If this round ends without a reply although the SET was collected or written,
 * the thread makes a round for the release, which does not wait for a reply. A write to the socket never blocks, and is
 * complete in the model. With three threads, only thread 1 may have a deadline, and there is no background task. The
 * steps of the leading thread between two polls touch nothing that other threads use, apart from the inbox, so each of
 * them is atomic in the model.
 *
 * If STARVES is defined, one leading thread gets no processor from any moment on, for a while or for ever. There is no
 * background task then, and a SET that has begun waits until the connection takes it. A release does not wait.
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
byte inbox;     /* rounds that the leading thread has not begun */
byte begun;    /* rounds that the leading thread makes */
byte releasing; /* threads whose round is a release */
byte buffer;    /* SET commands that are collected */
byte releases;  /* releases that are collected */
byte pending;   /* SET commands that are written, and whose replies have not been read */
byte replies;   /* replies that have arrived and are not read */
byte decided;   /* rounds whose replies were delivered */
byte expired;   /* rounds that the leading thread has ended at their deadlines */
byte unsent;    /* rounds whose deadlines had passed before they began */
byte due;       /* rounds whose deadlines have passed */
byte over;      /* rounds that have ended */
byte sleeping;  /* threads */
byte posted;    /* threads that are woken */
byte ended;     /* threads that have returned for the last time */
byte taken;     /* rounds that the leading thread has taken from the inbox and not begun */
byte waiting;   /* SET commands that have begun, and that the connection does not take yet */
byte left;      /* rounds that their threads have left; the leading thread has not noticed it */
byte gone;      /* releases in the inbox or in `taken` whose threads have left */
byte owed;      /* threads that have asked for a release */
byte released;  /* threads whose release is written */

byte leader = NOBODY;
byte starved = NOBODY; /* the leading thread that gets no processor */
bool ready;     /* the connection takes SET commands */
byte step;      /* of the leading thread */
#define TAKES 6
#define BEGINS 0
#define RESETS_LATE 1 /* in an unsafe variant only */
#define ENDS 2
#define POLLS 3
#define HANDS_OVER 4
#define RESIGNS 5
bool woken;     /* the wake-up of the leading thread */
bool flush_due; /* commands were collected for too long */
bool silent;    /* the server has stopped to reply */

/* The server cannot reply to a release in the model, because nobody waits for it. */
#define writes_all                                                                                                     \
    assert((buffer & released) == 0); /* no SET behind its release */                                                  \
    pending = pending | buffer;                                                                                        \
    buffer = 0;                                                                                                        \
    released = released | releases;                                                                                    \
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
#define HAS_SUCCESSOR ((begun & ~left) != 0)
#endif
#ifdef SLEEPS_ON
#define LEAVES false
#else
#define LEAVES true
#endif
#ifdef LEAVES_WITHOUT_WAKING
#define WAKE_AT_LEAVING skip
#else
#define WAKE_AT_LEAVING woken = true
#endif
#ifdef TOUCHES_THE_FRAME
#define TOUCH(set) assert(((set) & left) == 0)
#else
#define TOUCH(set) skip
#endif
#ifdef NAMES_ONE_THAT_LEFT
#define IS_THERE(set) (set)
#else
#define IS_THERE(set) ((set) & ~(left | gone))
#endif
#ifdef BEGINS_BEFORE_IT_ENDS
#define END_LEFT skip
#define END_LEFT_LATE end_left
#else
#define END_LEFT end_left
#define END_LEFT_LATE skip
#endif
#ifdef FORGETS_LEFT_RELEASES
#define KEPT 0
#else
#define KEPT gone
#endif
#ifdef FORGETS_THE_INBOX
#define NAMES_FROM_INBOX false
#else
#define NAMES_FROM_INBOX (IS_THERE(inbox) != 0)
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
#ifdef BLOCKS /* in recv(), in place of poll() */
#define ENDS_POLL false
#else
#define ENDS_POLL woken
#endif
#ifdef RESETS_LAST
#define RESET_FIRST skip
#define AFTER_BEGINNING RESETS_LATE
#else
#define RESET_FIRST woken = false
#define AFTER_BEGINNING ENDS
#endif

/* The leading thread ends the rounds that were left. A SET that was collected or written stays on the connection. */
#define end_left                                                                                                       \
    waiting = waiting & ~left;                                                                                         \
    begun = begun & ~left;                                                                                             \
    left = 0
/* The last leading thread begins and writes the releases in the inbox whose threads have left. */
#define write_gone                                                                                                     \
    end_left;                                                                                                          \
    releases = releases | (inbox & KEPT);                                                                              \
    inbox = inbox & ~gone;                                                                                             \
    gone = 0;                                                                                                          \
    WRITE_AT_LEAVING

/* Names one thread of the set as the leading thread. */
#define name_one(set)                                                                                                  \
    step = TAKES;                                                                                                      \
    if                                                                                                                 \
    :: (set) & bit(0) -> leader = 0; posted = posted | bit(0)                                                          \
    :: !((set) & bit(0)) && ((set) & bit(1)) -> leader = 1; posted = posted | bit(1)                                   \
    :: !((set) & (bit(0) | bit(1))) -> leader = 2; posted = posted | bit(2)                                            \
    fi
#define resign                                                                                                         \
    if                                                                                                                 \
    :: NAMES_FROM_INBOX -> name_one(IS_THERE(inbox))                                                                   \
    :: else ->                                                                                                         \
        write_gone;                                                                                                    \
        leader = NOBODY;                                                                                               \
        step = TAKES                                                                                                   \
    fi
#define leads(t) (leader == (t) && !(sleeping & bit(t)) && starved != (t))

proctype Thread(byte t) {
    bool first;
    bool leaves;
asks:
    skip;
    d_step { /* Rule 1. */
        printf("thread %d asks\n", t);
        first = (inbox == 0);
        leaves = false;
        inbox = inbox | bit(t);
        if
        :: leader == NOBODY -> leader = t; step = TAKES
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
    :: d_step { /* Rule 7. */
        LEAVES && (sleeping & bit(t)) && !(posted & bit(t)) && (due & bit(t)) ->
        printf("thread %d leaves\n", t);
        sleeping = sleeping & ~bit(t);
        leaves = true;
        WAKE_AT_LEAVING;
        if
        :: (releasing & bit(t)) && ((inbox & bit(t)) || (taken & bit(t) & ~left)) -> gone = gone | bit(t)
        :: !(releasing & bit(t)) && (inbox & bit(t)) ->
            inbox = inbox & ~bit(t);
            unsent = unsent | bit(t)
        :: else -> left = left | bit(t)
        fi;
        expired = expired | (bit(t) & ~releasing)
    }
    :: leaves -> break
    :: d_step { /* Rule 3. */
        leads(t) && step == TAKES ->
        printf("thread %d takes the new rounds\n", t);
        END_LEFT;
        taken = inbox;
        inbox = 0;
        step = BEGINS
    }
    :: d_step {
        leads(t) && step == BEGINS ->
        printf("thread %d begins them\n", t);
        TOUCH(taken);
        taken = taken & ~left;
        END_LEFT_LATE;
        releases = releases | (taken & releasing & (~gone | KEPT));
        begun = begun | (taken & ~gone);
        gone = gone & ~taken;
        expired = expired | (taken & due & ~releasing);
        unsent = unsent | (taken & due & ~releasing);
        waiting = waiting | (taken & ~due & ~releasing);
        taken = 0;
        if
        :: ready ->
            buffer = buffer | waiting;
            waiting = 0
        :: else
        fi;
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
        TOUCH(begun);
        over = over | (begun & ~left & (decided | expired | releasing));
        begun = begun & ~over;
        waiting = waiting & ~over;
        posted = posted | (sleeping & over);
        if
        :: over & bit(t) -> step = HANDS_OVER
        :: else -> step = POLLS
        fi
    }
    :: d_step { /* The poll ends. */
        leads(t) && step == POLLS &&
            (ENDS_POLL || replies != 0 || (begun & due) || FLUSH_ENDS_POLL || (ready && waiting)) ->
        RESET_FIRST;
        TOUCH(begun);
        decided = decided | (replies & begun & ~left);
        pending = pending & ~replies;
        replies = 0;
        expired = expired | (begun & due & ~decided & ~left);
        step = TAKES
    }
    :: d_step { /* Rules 4 and 5. */
        leads(t) && step == HANDS_OVER ->
        if
        :: HAS_SUCCESSOR -> name_one(IS_THERE(begun))
        :: else ->
            end_left;
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
        owed = owed | bit(t);
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

/* The connection is ready for SET commands from some time on. */
proctype Connection() {
    ready = true
}

/* One leading thread gets no processor for a while, or never again. */
proctype Scheduler() {
    if
    :: d_step {
        leader < THREADS && !(sleeping & bit(leader)) ->
        printf("        the leader gets no processor\n");
        starved = leader
    }
    :: true
    fi;
    if
    :: d_step {
        starved != NOBODY ->
        printf("        it gets one\n");
        starved = NOBODY
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
            end_left;
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
#define is_starved(t) (starved != NOBODY && (starved == (t) || !(due & bit(t))))
#define may_last(t) ((ended & bit(t)) || (silent && !(has_reason & bit(t))) || is_starved(t))
#if THREADS == 3
#define all_may_last (may_last(0) && may_last(1) && may_last(2))
#else
#define all_may_last (may_last(0) && may_last(1))
#endif
#define all_written ((buffer | releases | (owed & ~released)) == 0 && inbox == 0)
#define is_as_it_should_be (all_may_last && (all_written || starved != NOBODY))

init {
    atomic {
        step = TAKES;
        run Server();
        run FlushTimer();
#ifdef STARVES
        run Connection();
        run Scheduler();
#else
        ready = true;
#endif
        run Deadline(1);
        run Thread(0);
        run Thread(1);
#if THREADS == 3
        run Thread(2)
#else
        run Deadline(0)
#ifndef STARVES
        ;
        run Task()
#endif
#endif
    }
    timeout -> /* Nothing can happen any more. */
    assert(is_as_it_should_be)
}
