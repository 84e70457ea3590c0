import type { KeyUse } from '#auth/key-use.ts'
import type { Clock } from '#lib/clock.ts'
import type { Durations } from '#lib/durations.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { LogWriter } from '#log/log-writer.ts'
import type { NodeFence } from '#node/node-fence.ts'
import type { Allowances } from './allowances.ts'
import type { Authenticator } from './authenticator.ts'
import type { ClientAddresses } from './client-addresses.ts'
import type { CommitWaits } from './commit-waits.ts'
import type { CopyStore } from './copied.ts'
import type { CredentialLease } from './credential-lease.ts'
import type { EndpointCounts } from './endpoint-counters.ts'
import type { EndpointTable } from './endpoint-table.ts'
import type { Rooms } from './node-room.ts'
import type { RequestMemory } from './receipt.ts'
import type { Rejection } from './rejection.ts'
import type { Protocol, Verifier } from './sender.ts'

/** Parts that decide whether a sender is admitted, and where its records go. */
export type GateOptions = {
  /** `endpoints` is undefined until the first snapshot. */
  readonly configuration: { readonly endpoints: EndpointTable | undefined }
  /** `reason`: why this node takes no data any more. */
  readonly fence: Pick<NodeFence, 'reason'>
  readonly lease: Pick<CredentialLease, 'refusal'>
  readonly authenticator: Verifier & Pick<Authenticator, 'keyName' | 'keyStatus' | 'revision'>
  readonly clientAddresses: Pick<ClientAddresses, 'find'>
  readonly rooms: Rooms
  readonly allowances: Pick<Allowances, 'of' | 'countRefusal'>
  readonly keyUse: Pick<KeyUse, 'add'>
  readonly counts: Pick<EndpointCounts, 'of'>
  readonly log: Pick<LogWriter, 'append' | 'whenRecovered'>
  readonly storedRequests: RequestMemory
  readonly copies: CopyStore
  readonly commitWaits: Pick<CommitWaits, 'wait'>
  readonly clock: Clock
  readonly logger: Logger
}

/** Parts of the gate that admitted requests and sessions use. */
export type GateContext = GateOptions & {
  /** How long records that had arrived completely waited for their acknowledgement. */
  readonly acknowledgements: Readonly<Record<Protocol, Durations>>
  rejectionOf(error: unknown): Rejection
}
