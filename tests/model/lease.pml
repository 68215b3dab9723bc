/* The lease protocol for one run, two workers and two reapers, for spin (tests/model/check).
 * docs/model.md says which transition here is which function of the code.
 *
 * Worker 0 has two slots, so that a segment that lost the run and one that has it anew can live in
 * the same process; worker 1 has one. The run has two steps: a read, and a write that must not be
 * repeated. Every store verb is one atomic block, as it is one transaction in the code.
 *
 * Faults are counted: a kill (the worker starts anew, under another identity), a stall (its trust
 * in its leases runs out while it lives), a presence that is away for a moment, a failing step. A
 * person may cancel once, and resolve once as "not landed".
 *
 * Guards are macros; -DNO_… takes one out, and the check must then find an error. */

#ifndef FAULTS
#define FAULTS 2
#endif
#define BUDGET 1 /* max_requeues */
#define SLOTS 3
#define worker_of(s) ((s) / 2)
#define identity(w) ((w) + 1 + 2 * epoch[w]) /* 0: nobody */
#define READ 0
#define WRITE 1
#define STEPS 2

mtype = { queued, running, completed, failed, cancelled };
mtype = { none, held, over };

/* The row. */
mtype status = queued;
byte holder = 0;
byte claim = 0;
mtype lease = none;
bool by_presence = false; /* the lease was ended because its holder is gone */
byte recorded = 0;        /* steps in the journal */
byte fence = 0;           /* claim that made it; 0: none */
bool fence_over = false;  /* "not landed" may be believed */
byte requeues = 0;

/* Workers and their slots. */
byte epoch[2] = 0;
bool away = false; /* the presence of worker 0, which lives, is away for a moment */
byte own_claim[SLOTS] = 0; /* 0: idle */
byte own_epoch[SLOTS] = 0;
bool trusts[SLOTS] = false;

/* Ghosts: what is only there to be checked. */
byte faults = 0;
byte started = 0; /* starts of the write since somebody said that it had not landed */
bool ended = false;
byte accepted = 0; /* highest claim whose write was accepted */
byte writer = 0;   /* slot of that claim, plus one */
bool cancel_used = false;
bool resolve_used = false;

/* Guards. */
#ifdef NO_CLAIM_CHECK
#define CLAIM_IS(s) true
#else
#define CLAIM_IS(s) (claim == own_claim[s])
#endif
/* Claims alone tell segments apart here; the code compares the holder as well, for the day when a
 * store that was put back from a backup gives a number away again. */
#define HOLDER_IS(s) (holder == identity(worker_of(s)))
#ifdef NO_STATUS_CHECK
#define IS_RUNNING true
#else
#define IS_RUNNING (status == running)
#endif
#define MINE(s) (IS_RUNNING && HOLDER_IS(s) && CLAIM_IS(s))
#ifdef NO_CLEAN_CHECK
#define CLEAN true
#else
#define CLEAN (fence == 0)
#endif
#ifdef NO_RECHECK
#define STALE true
#else
#define STALE (status == running && lease == over)
#endif
#ifdef NO_BUDGET
#define BUDGET_LEFT true
#else
#define BUDGET_LEFT (requeues < BUDGET)
#endif
#ifdef NO_TERMINAL_CHECK
#define NOT_TERMINAL true
#else
#define NOT_TERMINAL (status == queued || status == running)
#endif
#ifdef NO_TRUST
#define TRUSTED(s) true
#else
#define TRUSTED(s) trusts[s]
#endif
#ifdef NO_FENCE_DEADLINE
#define MAY_BE_BELIEVED true
#else
#define MAY_BE_BELIEVED fence_over
#endif

#define IDLE(s) (own_claim[s] == 0)
#define LIVE(s) (own_epoch[s] == epoch[worker_of(s)])
#define GONE(h) ((h) != 0 && (h) != identity(0) && (h) != identity(1))
#define HOLDS(s) (LIVE(s) && !IDLE(s) && own_claim[s] == claim && status == running && \
                  holder == identity(worker_of(s)))
#define TRUSTING(s) (LIVE(s) && !IDLE(s) && trusts[s] && own_claim[s] == claim)
#define ANY_TRUSTING (TRUSTING(0) || TRUSTING(1) || TRUSTING(2))
#define ANY_HOLDS (HOLDS(0) || HOLDS(1) || HOLDS(2))
/* Might a live segment of the fence's claim still start its write? */
#define MAY_START(s) (LIVE(s) && !IDLE(s) && trusts[s] && own_claim[s] == fence)
#define ANY_MAY_START (MAY_START(0) || MAY_START(1) || MAY_START(2))

/* A write of a segment that the store accepted. */
inline accept(s) {
  assert(own_claim[s] == claim);                    /* by the segment that has the claim */
  assert(claim > accepted || writer == s + 1);      /* one writer for each claim */
  assert(claim >= accepted);                        /* claims only grow */
  accepted = claim;
  writer = s + 1
}
inline change_status(next) {
  assert(!ended);                                   /* terminal stays */
  status = next;
  if
  :: next == completed || next == failed || next == cancelled -> ended = true
  :: else
  fi
}
inline drop_claim() { holder = 0; lease = none; by_presence = false }
inline leave(s) { own_claim[s] = 0; own_epoch[s] = 0; trusts[s] = false; at = 0; fenced = 0 }
inline dead_letter() { drop_claim(); change_status(failed) }
inline requeue() {
  drop_claim();
  requeues++;
  assert(requeues <= BUDGET);                       /* the budget is kept */
  change_status(queued)
}
/* decide() on a failure or a lost worker. */
inline decide() {
  if
  :: CLEAN && BUDGET_LEFT -> requeue()
  :: else -> dead_letter()
  fi
}

proctype Slot(byte s) {
  byte at; /* the step it is at */
  byte fenced;
 idle:
  do
  :: atomic { status == queued && CLEAN ->          /* claim */
      own_epoch[s] = epoch[worker_of(s)];
      change_status(running);
      claim++;
      own_claim[s] = claim;
      holder = identity(worker_of(s));
      lease = held;
      trusts[s] = true;
      at = recorded;
      accept(s);
      break }
  od;
 go_on:
  if
  :: atomic { !LIVE(s) -> leave(s); goto idle }     /* it was killed */
  :: atomic { LIVE(s) && at < STEPS ->
      if
      :: at == WRITE && !fenced ->
#ifdef NO_FENCE
         fenced = true
#else
         if                                         /* fence: mine and clean */
         :: MINE(s) && CLEAN -> accept(s); fence = claim; fence_over = false; lease = held;
            trusts[s] = true; fenced = true
         :: else -> leave(s); goto idle
         fi
#endif
      :: at == WRITE && fenced == 1 && TRUSTED(s) ->   /* the last look, and the start */
         assert(started == 0);                      /* starts at most once, unless resolved */
         started++;
         fenced = 2
      :: at == WRITE && fenced == 1 && !TRUSTED(s) ->  /* nothing started: ask whose run it is */
         if
         :: MINE(s) -> lease = held; trusts[s] = true
         :: else -> leave(s); goto idle
         fi
      :: at == READ || fenced == 2 ->               /* record: renewal, event, fence cleared */
#ifdef NO_RENEWAL_FIRST
         if
         :: true ->
#else
         if
         :: MINE(s) ->
#endif
            accept(s);
            assert(recorded == at);                 /* a recorded step is executed once */
            recorded++;
            fence = 0;
            lease = held;
            trusts[s] = true;
            at++;
            fenced = 0
         :: !ended && status == running && !MINE(s) -> leave(s); goto idle
         :: status == cancelled && holder == identity(worker_of(s)) && claim == own_claim[s] ->
            holder = 0; leave(s); goto idle         /* record after cancel, acknowledged */
         :: else -> leave(s); goto idle
         fi
      fi;
      goto go_on }
  :: atomic { LIVE(s) && at == READ && faults < FAULTS ->  /* the step fails: requeue or give up */
      faults++;
      if
      :: MINE(s) -> accept(s); decide()
      :: else
      fi;
      leave(s);
      goto idle }
  :: atomic { LIVE(s) && at == STEPS ->             /* settle */
      if
      :: MINE(s) && CLEAN -> accept(s); drop_claim(); change_status(completed)
      :: else
      fi;
      leave(s);
      goto idle }
  fi
}

/* A look at the candidates, then a write of its own that looks again. */
proctype Reaper() {
  do
  :: atomic { status == running && lease == over -> skip };
     atomic {
       if
       :: STALE ->
          assert(status == running);
          /* a live worker that renews in time keeps its runs */
          assert(!by_presence || GONE(holder) || !ANY_TRUSTING || faults > 0);
          assert(lease == over);
          /* known gone, guardian included: not landed may be believed */
          if
          :: fence != 0 && by_presence && GONE(holder) -> fence_over = true
          :: else
          fi;
          decide()
       :: else
       fi
     }
  od
}

/* One process at a time watches the presence of the holder. */
proctype Watcher() {
  byte suspect;
  byte seen_claim;
  do
  :: atomic { status == running && lease == held && holder != 0 &&
              (GONE(holder) || (away && holder == identity(0))) ->
       suspect = holder; seen_claim = claim };
     atomic {
       if
#ifdef NO_PRESENCE_PROOF
       :: status == running && lease == held && holder == suspect ->
#else
       :: status == running && lease == held && holder == suspect && claim == seen_claim &&
          (GONE(suspect) || (away && suspect == identity(0))) ->
#endif
          /* the proof, and the expiry under it: never of a worker whose presence is there */
          assert(GONE(suspect) || (away && suspect == identity(0)));
          lease = over;
          by_presence = true
       :: else
       fi;
       suspect = 0;
       seen_claim = 0
     }
  od
}

/* The background renewal of all leases of the live workers. */
proctype KeepAlive() {
  byte s;
  do
  :: atomic { HOLDS(0) && (!trusts[0] || lease == over) && MINE(0) ->
              lease = held; by_presence = false; trusts[0] = true }
  :: atomic { HOLDS(1) && (!trusts[1] || lease == over) && MINE(1) ->
              lease = held; by_presence = false; trusts[1] = true }
  :: atomic { HOLDS(2) && (!trusts[2] || lease == over) && MINE(2) ->
              lease = held; by_presence = false; trusts[2] = true }
  od
}

/* Time: trust ends before the lease, and the lease of nobody who renews it ends. */
proctype Clock() {
  do
  :: atomic { status == running && lease == held && !ANY_TRUSTING && (faults > 0 || !ANY_HOLDS) ->
              lease = over }
  :: atomic { fence != 0 && !fence_over && !ANY_MAY_START && status != running ->
              fence_over = true }
  od
}

proctype Faults() {
  byte w;
  do
  :: faults >= FAULTS -> break
  :: atomic { faults < FAULTS -> select (w : 0 .. 1); faults++; epoch[w]++; w = 0 }
  :: atomic { faults < FAULTS && trusts[0] -> faults++; trusts[0] = false }  /* stalls */
  :: atomic { faults < FAULTS && trusts[1] -> faults++; trusts[1] = false }
  :: atomic { faults < FAULTS && trusts[2] -> faults++; trusts[2] = false }
  :: atomic { faults < FAULTS && !away -> faults++; away = true }
  :: away -> away = false
  :: break
  od;
  atomic { away = false; faults = FAULTS }
}

proctype Person() {
  do
  :: atomic { !cancel_used ->
       cancel_used = true;
       if
       :: NOT_TERMINAL -> lease = none; change_status(cancelled)
       :: else
       fi }
  :: atomic { !resolve_used && status == failed && fence != 0 && MAY_BE_BELIEVED ->
       resolve_used = true;                         /* resolve --not-landed */
       ended = false;
       fence = 0;
       started = 0;
       requeues = 0;
       change_status(queued) }
  :: break
  od
}

init {
  atomic {
    run Slot(0); run Slot(1); run Slot(2);
#ifndef NO_REAPER
    run Reaper();
    run Reaper();
#endif
    run Watcher(); run KeepAlive(); run Clock(); run Faults(); run Person()
  }
}

/* Once faults stop, the run ends. */
#ifdef LIVENESS
/* Where nobody can do anything, the world goes on all the same: that the run rests is seen. */
active proctype World() {
  do
  :: claim < 255 /* always */
  od
}
ltl ends { <> [] ended }
#endif
