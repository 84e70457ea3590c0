/** A gate in front of endpoints and a log that the test provides. Without `endpoints` it has no configuration yet. */

import { Allowances } from '#ingest/gate/allowances.ts'
import { ConnectionBudget } from '#ingest/gate/connection-budget.ts'
import { EndpointCounts } from '#ingest/gate/endpoint-counters.ts'
import { EndpointTable } from '#ingest/gate/endpoint-table.ts'
import { Gate, type GateOptions } from '#ingest/gate/gate.ts'
import type { Room } from '#ingest/gate/node-room.ts'
import { systemClock } from '#lib/clock.ts'
import { createLogger } from '#lib/telemetry.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'

/** A budget that never runs out. */
export function manyConnections(): ConnectionBudget {
  return new ConnectionBudget({ max: 100, maxUnauthenticated: 100, maxPerAddress: 100, clock: systemClock })
}

export function aGate({
  endpoints,
  append = () => Promise.reject(new Error('the test stores nothing')),
  whenRecovered = () => undefined,
  once = () => Promise.reject(new Error('the test stores nothing')),
  room = {},
}: {
  readonly endpoints?: readonly SnapshotEndpoint[]
  readonly append?: GateOptions['wal']['append']
  readonly whenRecovered?: GateOptions['wal']['whenRecovered']
  readonly once?: GateOptions['storedRequests']['once']
  readonly room?: Partial<Room>
} = {}): Gate {
  const nothing = () => undefined
  const anyRoom = {
    admit: nothing,
    reserve: nothing,
    forceReserve: nothing,
    release: nothing,
    tryHold: () => true,
    backpressureReason: nothing,
    ...room,
  }
  const logger = createLogger('test', 'silent')
  const control = { reportUsage: () => Promise.reject(new Error('the test has no control')) }
  const allowances = new Allowances({ nodeId: 'node', control, clock: systemClock, logger })
  allowances.configure(endpoints ?? [])
  return new Gate({
    configuration: { endpoints: endpoints && new EndpointTable({ region: 'loc', endpoints: [...endpoints] }) },
    capacity: { room: () => anyRoom, reasons: () => [] },
    allowances,
    keyUse: new Set<string>(),
    counts: new EndpointCounts(),
    clock: systemClock,
    wal: { append, whenRecovered },
    storedRequests: { once },
    logger,
  })
}
