/** A gate in front of endpoints and a log that the test provides. Without `endpoints` it has no configuration yet. */
import { Socket } from 'node:net'
import { AppError } from '#errors.ts'
import { Allowances } from '#ingest/gate/allowances.ts'
import { ConnectionBudget } from '#ingest/gate/connection-budget.ts'
import type { GateOptions } from '#ingest/gate/context.ts'
import { noCopyStore } from '#ingest/gate/copied.ts'
import { EndpointCounts } from '#ingest/gate/endpoint-counters.ts'
import { EndpointTable, type Route } from '#ingest/gate/endpoint-table.ts'
import { Gate } from '#ingest/gate/gate.ts'
import type { Room } from '#ingest/gate/node-room.ts'
import type { KeySender } from '#ingest/gate/sender.ts'
import { assert } from '#lib/assert.ts'
import { systemClock } from '#lib/clock.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import type { KeyPrincipal } from '#model/principal.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'

/** A budget that never runs out. */
export function manyConnections(): ConnectionBudget {
  return new ConnectionBudget({ max: 100, maxUnauthenticated: 100, maxPerAddress: 100, clock: systemClock })
}

/** A sender with a key of this principal, on a connection of its own. */
export function aSender(principal: KeyPrincipal, route: Route = { host: undefined, query: '' }): KeySender {
  const slot = manyConnections().accept(new Socket())
  assert(slot !== undefined, 'the budget has a place')
  return {
    protocol: 'http',
    slot,
    remote: { address: undefined },
    authenticate: () => principal,
    get host() {
      return route.host
    },
    get query() {
      return route.query
    },
  }
}

export function aGate({
  endpoints,
  configuration = { endpoints: endpoints && new EndpointTable({ region: 'loc', endpoints: [...endpoints] }) },
  counts = new EndpointCounts(),
  append = () => Promise.reject(new Error('the test stores nothing')),
  whenRecovered = () => Promise.resolve(true),
  copies = noCopyStore,
  commitWaits = { wait: () => ({ delivered: Promise.resolve(undefined), end: () => undefined }) },
  once = () => Promise.reject(new Error('the test stores nothing')),
  room = {},
  verifyKey = () => {
    throw new AppError('unauthorized', 'the test knows no key')
  },
  authenticator = {},
}: {
  readonly endpoints?: readonly SnapshotEndpoint[]
  /** Made of `endpoints` by default. A test that changes it sees the effect of a new snapshot. */
  readonly configuration?: GateOptions['configuration']
  readonly counts?: EndpointCounts
  readonly append?: GateOptions['log']['append']
  readonly whenRecovered?: GateOptions['log']['whenRecovered']
  readonly once?: GateOptions['storedRequests']['once']
  readonly copies?: GateOptions['copies']
  readonly commitWaits?: GateOptions['commitWaits']
  readonly room?: Partial<Room>
  readonly verifyKey?: GateOptions['authenticator']['verifyKey']
  readonly authenticator?: Partial<GateOptions['authenticator']>
} = {}): Gate {
  const nothing = () => undefined
  const anyRoom = {
    requireRoom: nothing,
    reserve: nothing,
    forceReserve: nothing,
    release: nothing,
    tryHold: () => true,
    backpressureReason: nothing,
    ...room,
  }
  const logger = createLogger('test', 'silent')
  const control = { reportUsage: () => Promise.reject(new Error('the test has no control')) }
  const allowances = new Allowances({ ...system, nodeId: 'node', control, clock: systemClock, logger })
  allowances.configure(endpoints ?? [])
  return new Gate({
    configuration,
    fence: { reason: undefined },
    lease: { refusal: undefined },
    // The same object, which the test may change.
    authenticator: Object.assign(authenticator, {
      verifyKey,
      verifyUrlKey: verifyKey,
      verifyToken: async (token: string) => verifyKey(token, undefined),
      keyName: () => 'a key',
      keyStatus: () => 'active' as const,
      revision: 0,
      ...authenticator,
    }),
    clientAddresses: { find: ({ address }) => address },
    rooms: { room: () => anyRoom, reasons: () => [] },
    allowances,
    keyUse: new Set<string>(),
    counts,
    clock: systemClock,
    log: { append, whenRecovered },
    storedRequests: { once, keyOf: async () => undefined },
    copies,
    commitWaits,
    logger,
  })
}
