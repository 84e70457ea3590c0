/**
 * The term of a leader, and the check of it in each transaction of the leader's work.
 *
 * Law: a transaction that has passed the check ends before the next term begins. So nothing that an earlier leader decided is written after
 * that.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Transaction } from 'kysely'
import type { Database } from './schema.ts'

export type LeaderTerm = {
  readonly term: number
  /** Called when a later term has begun. */
  readonly onOver: () => void
}

/** A later leader has begun: the one of this term must not write any more. */
export class OlderLeaderTermError extends Error {
  readonly code = 'older_leader_term'

  constructor(term: number, now: number) {
    super(`the term ${term} of the leader is over: the leader of term ${now} has begun`)
  }
}

const terms = new AsyncLocalStorage<LeaderTerm>()

/** Runs work of the leader. Each transaction in it is refused with an OlderLeaderTermError once the term is over. */
export function withinTerm<T>(term: LeaderTerm, work: () => T): T {
  return terms.run(term, work)
}

/** Throws OlderLeaderTermError if this is work of an earlier leader. Call it first in a transaction. The next term waits for its end. */
export async function requireTerm(db: Transaction<Database>, dialect: 'sqlite' | 'postgres'): Promise<void> {
  const within = terms.getStore()
  if (within === undefined) return
  const query = db.selectFrom('leader').select('term')
  // A transaction of SQLite has the write lock from its start.
  const { term: now } = await (dialect === 'postgres' ? query.forShare() : query).executeTakeFirstOrThrow()
  if (now === within.term) return
  within.onOver()
  throw new OlderLeaderTermError(within.term, now)
}
