/**
 * Shares one bounded resource of a node (bytes or connections) among accounts, and the share of an account among its endpoints.
 *
 * Half of the total is guaranteed: it is divided among the accounts by weight, and half of what an account gets among its endpoints. The
 * other halves are pools. Whoever is above its guarantee takes from a pool, but only as long as at least as much stays free there: the
 * dynamic threshold of Choudhury and Hahne. Without competitors everything is guaranteed.
 *
 * A new configuration revokes nothing, so accounts may use more than their new share, and guarantees may lack room. For that a `reserve`
 * can be kept out of the division. Only accounts within their guarantee take from it, each as long as the total keeps at least as much free
 * as the account uses. So each newcomer leaves at least half of the reserve that it found to the next.
 *
 * Owns: who uses how much, and who may use more. Does not own: the resource.
 * Law: an account within its guarantee is never refused because of others while everybody is within its share, and at any time not if it
 * uses no more than then stays free. `take` never exceeds the total. `force` may, so callers of `force` stop when there is no room. What
 * removed endpoints still use takes from the guarantee of their account: otherwise each new endpoint would bring it again.
 */
import type { SnapshotEndpoint } from '#model/snapshot.ts'

export type Member = { readonly account: string; readonly weight: number; readonly name: string }

export type MemberEndpoint = Pick<SnapshotEndpoint, 'id' | 'account_id' | 'account_weight'>

export function memberOf({ id, account_id, account_weight }: MemberEndpoint): Member {
  return { name: id, account: account_id, weight: account_weight }
}

/** Bound that a request would exceed: the share of its endpoint, the share of its account, or the total. */
export type Bound = 'endpoint' | 'account' | 'node'

/** An account may use as much of the pool of the node as it leaves free. */
const ACCOUNT_LEAVES = 1
/** The endpoints of an account have one owner, so one of them may use four times as much of the account's pool as it leaves free. */
const ENDPOINT_LEAVES = 1 / 4

/** The account of names that no configuration has listed yet, such as logs found at the start. */
const UNLISTED = ''

export class FairShares {
  readonly total: number
  /** Divided amount: the total without the reserve. */
  readonly divided: number
  readonly #accounts = new Map<string, AccountShare>()
  readonly #shares = new Map<string, Share>()
  /** Usage at the last configuration of names that are no longer members. */
  readonly #leftovers = new Map<Share, number>()
  /** The part of what is divided that no account is guaranteed, and how much of it the accounts use. */
  pool: number
  poolUsed = 0
  used = 0

  constructor(total: number, { reserve = 0 }: { readonly reserve?: number } = {}) {
    this.total = total
    this.divided = total - reserve
    this.pool = this.divided
  }

  /** Returns the share of this name. It stays the same object as long as it is configured or in use. */
  share(name: string): Share {
    let share = this.#shares.get(name)
    if (share === undefined) {
      share = new Share(this.#account(UNLISTED))
      this.#shares.set(name, share)
    }
    return share
  }

  /** Divides the guarantees anew. What a name that is no longer a member still uses counts for its last account. */
  configure(members: Iterable<Member>): void {
    const accountOf = new Map<string, string>()
    const weights = new Map<string, number>()
    const sizes = new Map<string, number>()
    for (const { account, weight, name } of members) {
      this.share(name)
      accountOf.set(name, account)
      weights.set(account, weight)
      sizes.set(account, (sizes.get(account) ?? 0) + 1)
    }
    const guaranteed = this.divided / Math.min(2, weights.size || Number.POSITIVE_INFINITY)
    this.pool = this.divided - guaranteed
    const perWeight = guaranteed / Math.max(1, sum(weights.values()))
    this.#findLeftovers(accountOf)
    for (const [name, account] of this.#accounts) {
      account.configure(perWeight * (weights.get(name) ?? 0), sizes.get(name) ?? 0)
      if (account.size === 0 && account.used === 0) this.#accounts.delete(name)
    }
    for (const [name, share] of this.#shares) {
      const account = accountOf.get(name)
      if (account !== undefined) share.configure(this.#account(account), this.#account(account).endpointGuarantee)
      else share.configure(share.account, Math.floor(share.used * share.account.leftoverPart))
    }
  }

  /** Whether removed names use something else than at the last configuration, so that it should be repeated. */
  get isOutdated(): boolean {
    return this.#leftovers.entries().some(([share, used]) => share.used !== used)
  }

  #findLeftovers(members: ReadonlyMap<string, string>): void {
    this.#leftovers.clear()
    for (const account of this.#accounts.values()) account.leftover = 0
    for (const [name, share] of this.#shares) {
      const account = members.get(name)
      if (account !== undefined) this.#account(account)
      else if (share.used === 0) this.#shares.delete(name)
      else {
        share.account.leftover += share.used
        this.#leftovers.set(share, share.used)
      }
    }
  }

  /** How much of the pool is in use, from 0 to 1. More than all of it counts as all. */
  get poolUsedRatio(): number {
    return this.pool === 0 ? 0 : Math.min(1, this.poolUsed / this.pool)
  }

  /** The accounts that use most, for metrics. */
  largest(count: number): readonly (readonly [account: string, used: number])[] {
    const using = [...this.#accounts].flatMap(([name, { used }]) =>
      used > 0 && name !== UNLISTED ? [[name, used] as const] : [],
    )
    return using.sort(([, one], [, other]) => other - one).slice(0, count)
  }

  #account(name: string): AccountShare {
    let account = this.#accounts.get(name)
    if (account === undefined) {
      account = new AccountShare(this)
      this.#accounts.set(name, account)
    }
    return account
  }
}

class AccountShare {
  readonly node: FairShares
  /** Amount that the account alone may use, beside the guarantees of its endpoints. */
  pool = 0
  /** Number of its endpoints. */
  size = 0
  /** Usage of its endpoints above their guarantees, and the part of it that comes from the pool of the node. */
  above = 0
  fromNode = 0
  used = 0
  /** Usage of removed endpoints, and the part of it that is guaranteed. */
  leftover = 0
  leftoverPart = 0
  endpointGuarantee = 0

  constructor(node: FairShares) {
    this.node = node
  }

  /** Divides the guarantee of the account: first for what removed endpoints use, then among its endpoints and their pool. */
  configure(guarantee: number, size: number): void {
    const forLeftover = Math.min(guarantee, this.leftover)
    const rest = guarantee - forLeftover
    this.leftoverPart = this.leftover === 0 ? 0 : forLeftover / this.leftover
    this.endpointGuarantee = Math.floor(size > 1 ? rest / (2 * size) : rest)
    this.pool = size > 1 ? Math.floor(rest / 2) : 0
    this.size = size
    this.addAbove(0)
  }

  addAbove(units: number): void {
    this.above += units
    const fromNode = Math.max(0, this.above - this.pool)
    this.node.poolUsed += fromNode - this.fromNode
    this.fromNode = fromNode
  }

  /** Returns which bound stands against `more` above the guarantee of an endpoint, which then has `endpointAbove`. */
  boundOn(more: number, endpointAbove: number): 'endpoint' | 'account' | undefined {
    const { pool, poolUsed } = this.node
    const above = this.above + more
    const others = poolUsed - this.fromNode
    const fromNode = above - this.pool
    if (fromNode > 0 && fromNode * ACCOUNT_LEAVES > pool - others - fromNode) return 'account'
    if (this.size <= 1) return undefined
    const most = this.pool + Math.max(0, pool - others) / (1 + ACCOUNT_LEAVES)
    return endpointAbove * ENDPOINT_LEAVES > most - above ? 'endpoint' : undefined
  }
}

/** Usage of one endpoint. Each call costs a few additions and comparisons, because requests and messages make several. */
export class Share {
  #account: AccountShare
  #guarantee = 0
  #used = 0

  constructor(account: AccountShare) {
    this.#account = account
  }

  get account(): AccountShare {
    return this.#account
  }

  get used(): number {
    return this.#used
  }

  /** Amount that it may use whatever others do, if they are within their shares. */
  get guarantee(): number {
    return this.#guarantee
  }

  /** Returns which bound stands against using `units` more; undefined if there is room. */
  boundOn(units: number): Bound | undefined {
    const account = this.#account
    const { total, divided, used } = account.node
    if (used + units > total) return 'node'
    const above = this.#used + units - this.#guarantee
    const bound = above <= 0 ? undefined : account.boundOn(Math.min(units, above), above)
    if (bound !== undefined || used + units <= divided) return bound
    return account.used + units > total - used - units ? 'node' : undefined
  }

  /** Takes `units` if there is room. Otherwise takes nothing, and returns the bound that stands against it. */
  take(units: number): Bound | undefined {
    const bound = this.boundOn(units)
    if (bound === undefined) this.force(units)
    return bound
  }

  /** Takes `units` even without room, or gives them back if negative. */
  force(units: number): void {
    const account = this.#account
    const before = this.#used - this.#guarantee
    this.#used += units
    account.used += units
    account.node.used += units
    const now = before + units
    if (before > 0 || now > 0) account.addAbove(Math.max(0, now) - Math.max(0, before))
  }

  release(units: number): void {
    this.force(-units)
  }

  /** Whether the endpoint, its account or the node uses more than half of what it may. */
  get isHalfUsed(): boolean {
    return this.boundOn(this.#used) !== undefined
  }

  configure(account: AccountShare, guarantee: number): void {
    const used = this.#used
    this.force(-used)
    this.#account = account
    this.#guarantee = guarantee
    this.force(used)
  }
}

function sum(numbers: Iterable<number>): number {
  let total = 0
  for (const number of numbers) total += number
  return total
}
