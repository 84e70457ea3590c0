/**
 * Limits the number of open connections of this node, over all protocols.
 *
 * A connection begins in a pool for those that have not authenticated, with a bound on each client address. Its first authenticated request
 * moves it to the share of the account.
 *
 * Owns: the number of connections, by address and by account. Does not own: how long a connection may take to authenticate (the protocols).
 * Law: every slot is released once, when its socket has closed. Clients that do not authenticate take no place of those that do.
 */
import type { Socket } from 'node:net'
import type { Clock } from '#lib/clock.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import { type Bound, FairShares, type Share } from './fair-shares.ts'
import { gateLimits } from './limits.ts'
import { type Rejection, tryAgain } from './rejection.ts'

export type ConnectionBudgetOptions = {
  /** Authenticated connections, shared by account. */
  readonly max: number
  readonly maxUnauthenticated: number
  readonly maxPerAddress: number
  readonly clock: Clock
}

type Refusal = 'address' | 'unauthenticated' | Bound

export class ConnectionBudget {
  /** Shares of authenticated connections, by account. */
  readonly shares: FairShares
  /** By what was used up, as `connections_<refusal>`. */
  readonly refusals = new Map<string, number>()
  readonly #options: ConnectionBudgetOptions
  /** The oldest first. */
  readonly #unauthenticated = new Set<ConnectionSlot>()
  readonly #byAddress = new Map<string, number>()
  readonly #inHandshake = new Map<string, ConnectionSlot>()
  #open = 0
  #dropped = 0
  #configured: readonly SnapshotEndpoint[] | undefined

  constructor(options: ConnectionBudgetOptions) {
    this.#options = options
    this.shares = new FairShares(options.max)
  }

  /** Bound on all connections together, for the listeners. */
  get max(): number {
    return this.#options.max + this.#options.maxUnauthenticated
  }

  get open(): number {
    return this.#open
  }

  get unauthenticated(): number {
    return this.#unauthenticated.size
  }

  /** Connections that were closed at once because there were too many. */
  get dropped(): number {
    return this.#dropped
  }

  configure(endpoints: readonly SnapshotEndpoint[]): void {
    if (endpoints === this.#configured) return
    this.#configured = endpoints
    const weights = new Map(endpoints.map(({ account_id, account_weight }) => [account_id, account_weight]))
    this.shares.configure([...weights].map(([account, weight]) => ({ account, weight, name: account })))
  }

  /** Takes a slot for a new connection until it closes. If there is none, closes the connection and returns undefined. */
  accept(socket: Socket): ConnectionSlot | undefined {
    const address = networkOf(socket.remoteAddress ?? '')
    if ((this.#byAddress.get(address) ?? 0) >= this.#options.maxPerAddress && !this.#evictOldest(address))
      return this.#drop(socket, 'address')
    if (this.#unauthenticated.size >= this.#options.maxUnauthenticated && !this.#evictOldest())
      return this.#drop(socket, 'unauthenticated')
    const slot = new ConnectionSlot(this, { socket, address, acceptedAtMs: this.#options.clock.monotonic() })
    this.#open += 1
    this.#unauthenticated.add(slot)
    this.#byAddress.set(address, (this.#byAddress.get(address) ?? 0) + 1)
    socket.once('close', () => {
      this.#open -= 1
      slot.leave()
      this.leaveUnauthenticated(slot)
    })
    return slot
  }

  /** Takes a slot for a connection on which a TLS handshake begins. `secured` returns it. */
  acceptHandshake(socket: Socket): void {
    const slot = this.accept(socket)
    const name = nameOf(socket)
    if (slot === undefined) return
    this.#inHandshake.set(name, slot)
    socket.once('close', () => {
      if (this.#inHandshake.get(name) === slot) this.#inHandshake.delete(name)
    })
  }

  /** Returns the slot of a connection whose handshake is over; undefined if the connection is gone. */
  secured(socket: Socket): ConnectionSlot | undefined {
    const name = nameOf(socket)
    const slot = this.#inHandshake.get(name)
    this.#inHandshake.delete(name)
    return slot
  }

  /** Counts a connection that the listener dropped before it was offered here. */
  countDropped(): void {
    this.#dropped += 1
  }

  countRefusal(refusal: Refusal): void {
    const name = `connections_${refusal}`
    this.refusals.set(name, (this.refusals.get(name) ?? 0) + 1)
  }

  /** Frees the place of a slot among the connections that have not authenticated. Idempotent. */
  leaveUnauthenticated(slot: ConnectionSlot): void {
    if (!this.#unauthenticated.delete(slot)) return
    const left = (this.#byAddress.get(slot.address) ?? 1) - 1
    if (left > 0) this.#byAddress.set(slot.address, left)
    else this.#byAddress.delete(slot.address)
  }

  /** The oldest, of this address if there is one, has had its time. So a client that keeps the pool full must reconnect all of it every second. */
  #evictOldest(address?: string): boolean {
    const oldest = this.#unauthenticated.values().find((slot) => address === undefined || slot.address === address)
    if (oldest === undefined || this.#options.clock.monotonic() - oldest.acceptedAtMs < gateLimits.evictableAfterMs) return false
    this.leaveUnauthenticated(oldest)
    oldest.close()
    this.#dropped += 1
    return true
  }

  #drop(socket: Socket, refusal: Refusal): undefined {
    this.#dropped += 1
    this.countRefusal(refusal)
    socket.destroy()
  }
}

const texts: Readonly<Record<Bound, string>> = {
  endpoint: 'the account uses up its share of the connections of this node; use fewer connections',
  account: 'the account uses up its share of the connections of this node; use fewer connections',
  node: 'this node has too many connections',
}

/** The place of one connection. */
export class ConnectionSlot {
  readonly address: string
  readonly acceptedAtMs: number
  readonly #budget: ConnectionBudget
  readonly #socket: Socket
  #account: string | undefined
  #share: Share | undefined
  #hasLeft = false

  constructor(
    budget: ConnectionBudget,
    { socket, address, acceptedAtMs }: { readonly socket: Socket; readonly address: string; readonly acceptedAtMs: number },
  ) {
    this.#budget = budget
    this.#socket = socket
    this.address = address
    this.acceptedAtMs = acceptedAtMs
  }

  /** Owner of the connection for fair sharing: the account, or the address until the account is known. */
  get owner(): string {
    return this.#account ?? this.address
  }

  get isAuthenticated(): boolean {
    return this.#share !== undefined
  }

  /** Counts the connection for this account, from now on. Returns why the account may have no more; it then stays where it is. */
  claim(account: string): Rejection | undefined {
    // A token may be verified only after its connection has closed.
    if (account === this.#account || this.#hasLeft) return undefined
    const share = this.#budget.shares.share(account)
    const bound = share.take(1)
    if (bound === undefined) {
      this.#move(account, share)
      return undefined
    }
    this.#budget.countRefusal(bound)
    return tryAgain('no_room', texts[bound], gateLimits.retryConnectionsSeconds, { endsConnection: true })
  }

  /** Like `claim`, for a connection that replaces another one of the account. */
  force(account: string): void {
    if (this.#hasLeft) return
    const share = this.#budget.shares.share(account)
    share.force(1)
    this.#move(account, share)
  }

  /** No longer counts the connection for its account: it is about to close. */
  leave(): void {
    this.#hasLeft = true
    this.#share?.release(1)
    this.#share = undefined
    this.#account = undefined
  }

  close(): void {
    this.#socket.destroy()
  }

  #move(account: string, share: Share): void {
    this.#budget.leaveUnauthenticated(this)
    this.#share?.release(1)
    this.#share = share
    this.#account = account
  }
}

/** Identifies a connection by its two ends: of a TLS connection Node shows two sockets that do not know each other. */
function nameOf({ localAddress, localPort, remoteAddress, remotePort }: Socket): string {
  return `${localAddress} ${localPort} ${remoteAddress} ${remotePort}`
}

/** Returns what one client has for itself: an IPv4 address, or the first 64 bits of an IPv6 address. */
export function networkOf(address: string): string {
  const ipv4 = address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address
  if (!ipv4.includes(':')) return ipv4
  const [left = '', right] = address.split('::')
  const groups = left === '' ? [] : left.split(':')
  const tail = right === undefined || right === '' ? 0 : right.split(':').length
  while (right !== undefined && groups.length + tail < IPV6_GROUPS) groups.push('0')
  return [...groups, ...(right ?? '').split(':')].slice(0, IPV6_GROUPS / 2).join(':')
}

const IPV6_GROUPS = 8
