/** A gate in front of endpoints and a log that the test provides. Without `endpoints` it has no configuration yet. */
import type { Capacity } from '#ingest/admission.ts'
import { EndpointTable } from '#ingest/endpoint-table.ts'
import { Gate, type GateOptions } from '#ingest/gate.ts'
import { createLogger } from '#lib/telemetry.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'

export function aGate({
  endpoints,
  append = () => Promise.reject(new Error('the test stores nothing')),
  capacity = {},
}: {
  readonly endpoints?: readonly SnapshotEndpoint[]
  readonly append?: GateOptions['wal']['append']
  readonly capacity?: Partial<Capacity>
} = {}): Gate {
  const nothing = () => undefined
  return new Gate({
    configuration: { endpoints: endpoints && new EndpointTable({ region: 'loc', endpoints: [...endpoints] }) },
    capacity: {
      admit: nothing,
      reserve: nothing,
      forceReserve: nothing,
      release: nothing,
      backpressureReason: nothing,
      reasons: () => [],
      ...capacity,
    },
    wal: { append },
    logger: createLogger('test', 'silent'),
  })
}
