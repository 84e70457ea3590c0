/**
 * Records who tries to change what, and what comes of it.
 *
 * Owns: the events of the calls to this process, and how long events are kept. Does not own: which calls are recorded (http/requests/audit.ts).
 * Law: a change is committed only together with its event, and only while tokens of the caller's key are valid and the account is not
 * suspended; one that gives access, only while the key itself is valid. Failed calls beyond a bound are only counted.
 */
import { isDeepStrictEqual } from 'node:util'
import { RevokedKeyError } from '#auth/access-tokens.ts'
import { AppError } from '#errors.ts'
import { timeOrderedUuid } from '#lib/uuid.ts'
import {
  type AuditEvent,
  type AuditEventPage,
  type AuditEventQuery,
  AuditResult,
  type InstallationAuditEventQuery,
} from '#model/audit-event.ts'
import { auditLimits } from '#model/limits.ts'
import { isPerson, type PersonPrincipal, type Principal } from '#model/principal.ts'
import { isAccountSuspended } from '#store/accounts/accounts.ts'
import { findRevokedKey } from '#store/accounts/api-keys.ts'
import {
  insertAuditEvent,
  listAuditEvents,
  listAuditedAccounts,
  type NewAuditEvent,
  removeAuditEventsBefore,
  removeAuditEventsBeyond,
  upsertAuditEvent,
} from '#store/accounts/audit-events.ts'
import { findRole } from '#store/accounts/people.ts'
import { type Companion, type Db, withCompanion } from '#store/store.ts'
import type { ControlContext } from '../context.ts'
import { controlLimits } from '../limits.ts'
import { accountSuspended } from './accounts.ts'
import { removeAll } from './batches.ts'
import { FailureBudget } from './failure-budget.ts'

/** A call that may change something. Its fields may be completed until `finish`. */
export type Attempt = {
  account_id: string | null
  resource_id: string | null
  readonly actor: NewAuditEvent['actor']
  readonly address: string | null
  readonly operation: string
  readonly request_id: string
}

/** The event of an attempt, and what of it is committed. */
export type AuditedCall = {
  readonly id: string
  readonly at: number
  /** Principal of the access token; undefined for the operator, and for callers without credentials. */
  readonly principal: Principal | undefined
  readonly attempt: Attempt
  /** Whether the call creates access that outlives its token. */
  readonly grantsAccess: boolean
  companion: Companion | undefined
  written: NewAuditEvent | undefined
}

export type Outcome = Pick<NewAuditEvent, 'status' | 'error'>

export type AuditTrailOptions = Pick<ControlContext, 'store' | 'clock' | 'logger'> & {
  /** How long events are kept. */
  readonly keptMs: number
}

export class AuditTrail {
  readonly #options: AuditTrailOptions
  readonly #failures: FailureBudget
  #lastAt = 0

  constructor(options: AuditTrailOptions) {
    this.#options = options
    this.#failures = new FailureBudget(options.clock)
  }

  begin(attempt: Attempt, principal: Principal | undefined, grantsAccess = false): AuditedCall {
    // Later than the event before, so that ids keep the order of calls.
    this.#lastAt = Math.max(this.#options.clock.now(), this.#lastAt + 1)
    return {
      id: timeOrderedUuid(this.#lastAt),
      at: this.#lastAt,
      principal,
      attempt,
      grantsAccess,
      companion: undefined,
      written: undefined,
    }
  }

  /** Runs `work`. Its transactions contain the event, as a success with the status that the call then has. */
  within<T>(call: AuditedCall, status: () => number, work: () => T): T {
    const write = async (db: Db) => {
      await requireActive(db, call, this.#options.clock.now())
      const event = eventOf(call, { status: status(), error: null })
      await insertAuditEvent(db, event)
      call.written = event
    }
    call.companion = { write, isSkipped: false }
    return withCompanion(call.companion, work)
  }

  /** Records what came of the call. Never throws: the change is made, or refused, already. A success that changed nothing is not recorded. */
  async finish(call: AuditedCall, outcome: Outcome): Promise<void> {
    if (outcome.error === null && call.companion?.isSkipped) return
    const account = call.attempt.account_id ?? ''
    if (outcome.error !== null && call.written === undefined) {
      // Nothing was changed or refused, and waiting for the database again would only delay the response.
      if (outcome.error === 'unavailable' || !this.#failures.take(account)) return
    }
    const event = { ...eventOf(call, outcome), unrecorded: this.#failures.takeUnrecorded(account) }
    if (isDeepStrictEqual(event, call.written)) return
    try {
      await upsertAuditEvent(this.#options.store.db, event)
    } catch (error) {
      this.#options.logger.error({ err: error, audit_event: event }, 'audit event lost')
    }
  }

  /** Returns the events of an account. It does not learn from which address the operator works. */
  async list(account_id: string, query: AuditEventQuery): Promise<AuditEventPage> {
    const page = await listAuditEvents(this.#options.store.db, account_id, query)
    const isOfOperator = ({ actor, operation, resource_id }: AuditEvent) =>
      actor === 'operator' || resource_id === account_id || operation === 'confirmInstallationLoss'
    const items = page.items.map((event) => (isOfOperator(event) ? { ...event, address: null } : event))
    return { ...page, items }
  }

  listAll({ account_id, ...query }: InstallationAuditEventQuery): Promise<AuditEventPage> {
    return listAuditEvents(this.#options.store.db, account_id, query)
  }

  /** Removes events that are too old or too many, a batch at a time. */
  async prune(signal?: AbortSignal): Promise<void> {
    const { store, clock, keptMs } = this.#options
    const limit = controlLimits.rowsRemovedAtOnce
    await removeAll(() => removeAuditEventsBefore(store.db, clock.now() - keptMs, limit), signal)
    for (const account of await listAuditedAccounts(store.db)) {
      for (const result of AuditResult.options) {
        const max = auditLimits.eventsMax[result]
        await removeAll(() => removeAuditEventsBeyond(store.db, account, { result, max, limit }), signal)
      }
    }
  }
}

const revocations: readonly string[] = ['revokeKey', 'revokeKeyNow']

/**
 * Checks the account and the key again: since the token was verified, the body may have arrived slowly, and another process may have
 * suspended the one or revoked the other. Throws account_suspended, and RevokedKeyError.
 */
async function requireActive(db: Db, { principal, attempt, grantsAccess }: AuditedCall, nowMs: number): Promise<void> {
  if (principal === undefined) return
  if (await isAccountSuspended(db, principal.account_id)) throw accountSuspended()
  if (isPerson(principal)) return requireRole(db, principal)
  const isRevokingItself = revocations.includes(attempt.operation) && attempt.resource_id === principal.key_id
  if (isRevokingItself) return
  const revoked = await findRevokedKey(db, principal.key_id)
  if (revoked === undefined) return
  const isOver = revoked.tokens_until === null || nowMs >= Date.parse(revoked.tokens_until)
  if (isOver || grantsAccess) throw new RevokedKeyError(principal)
}

async function requireRole(db: Db, { person_id, account_id, role }: PersonPrincipal): Promise<void> {
  if ((await findRole(db, person_id, account_id)) === role) return
  throw new AppError('forbidden', 'your role in this account has just changed: load the page again')
}

function eventOf({ id, at, attempt }: AuditedCall, outcome: Outcome): NewAuditEvent {
  return { id, at, ...attempt, ...outcome, result: outcome.error === null ? 'succeeded' : 'failed', unrecorded: 0 }
}
