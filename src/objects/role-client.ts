import type { S3Client } from '@aws-sdk/client-s3'
import type { RoleSession } from './role-session.ts'

/** An S3 client that signs as the role of a destination. */
export type RoleClient = {
  readonly client: S3Client
  readonly session: RoleSession
  /** Resolves once there are credentials and the clock offset is known from STS. */
  readonly ready: (signal?: AbortSignal) => Promise<void>
}
