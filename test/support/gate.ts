/** A gate in front of endpoints and a log that the test provides. Without `endpoints` it has no configuration yet. */
import type { Room } from '#ingest/admission.ts'
import { EndpointTable } from '#ingest/endpoint-table.ts'
import { Gate, type GateOptions } from '#ingest/gate.ts'
import { createLogger } from '#lib/telemetry.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'

export function aGate({
  endpoints,
  append = () => Promise.reject(new Error('the test stores nothing')),
  room = {},
}: {
  readonly endpoints?: readonly SnapshotEndpoint[]
  readonly append?: GateOptions['wal']['append']
  readonly room?: Partial<Room>
} = {}): Gate {
  const nothing = () => undefined
  const anyRoom = {
    admit: nothing,
    reserve: nothing,
    forceReserve: nothing,
    release: nothing,
    backpressureReason: nothing,
    ...room,
  }
  return new Gate({
    configuration: { endpoints: endpoints && new EndpointTable({ region: 'loc', endpoints: [...endpoints] }) },
    capacity: { room: () => anyRoom, reasons: () => [] },
    wal: { append },
    logger: createLogger('test', 'silent'),
  })
}
