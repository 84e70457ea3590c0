import type { S3Client } from '@aws-sdk/client-s3'
import type { RoleSession } from './role-session.ts'

/** An S3 client that signs as the role of a destination, or with the credentials of this installation. */
export type RoleClient = {
  readonly client: S3Client
  readonly session: Pick<RoleSession, 'discard' | 'discardIfOld'>
  /** Resolves once there are credentials and, with a role, the clock offset is known from STS. */
  readonly ready: (signal?: AbortSignal) => Promise<void>
}
