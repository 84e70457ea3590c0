import { z } from 'zod'
import { Id } from './id.ts'
import { auditLimits } from './limits.ts'
import { PageLimit } from './page.ts'
import { Timestamp, TimestampInput } from './timestamp.ts'

export const AuditResult = z.enum(['succeeded', 'failed'])
export type AuditResult = z.infer<typeof AuditResult>

/** Actor of an attempted change. `key:<id>` names an API key, `person:<id>` somebody with a session of the console. */
export type AuditActor =
  | `key:${string}`
  | `person:${string}`
  | 'operator'
  | 'cli'
  | 'bootstrap'
  | `join-token:${string}`
  | 'join-secret'
  | `node:${string}`
  | 'inlet'
  | 'unknown'

/** An attempt to change something, with what came of it. It never has a secret or a body in it. */
export const AuditEvent = z.object({
  id: Id,
  at: Timestamp,
  account_id: Id.nullable().meta({ description: 'the account that the call belongs to; null if it belongs to none' }),
  actor: z.string().meta({
    description:
      '`key:<id>`: a token of this API key; `person:<id>`: somebody in the console; `operator`: the operator token; `cli`: a command on the machine of the database; `bootstrap`: a start; `join-token:<id>`, `join-secret`: a node that joined; `node:<id>`: a machine that adopted the log of this node; `inlet`: a rule, such as that of a canary; `unknown`: no valid credentials',
    examples: ['key:4f8c1f0e-6a53-4c0e-9d3b-0000000000e1'],
  }),
  actor_name: z
    .string()
    .nullable()
    .meta({ description: 'of the person or key, as it is called now; null if it is not known here' }),
  address: z
    .string()
    .nullable()
    .meta({ description: 'the client, as control sees it; null for commands, and for calls of the operator' }),
  operation: z.string().meta({
    description:
      'the `operationId` in this description; `revokeKeyNow` for `revokeKey` with `now`; `joinNode` for a node that joined; `adoptNode` for a machine that adopted the log of one; `takeOverNode` for a node that took over a lost one; `applyRevocation` for a revoked key that every node refuses from then on; `recordLosses` for a node that was removed before it had delivered everything; `stopCanary` for a canary that its rule stopped; `signInByEmail` and the like for people at the console',
    examples: ['createKey'],
  }),
  resource_id: z.string().nullable().meta({ description: 'what was created, changed or named' }),
  resource_name: z.string().nullable().meta({ description: 'as it is called now; null if it is gone or not of the account' }),
  result: AuditResult,
  status: z.int().nullable().meta({ description: 'of the response; null for commands and starts' }),
  error: z.string().nullable().meta({ description: 'the error code of a failed call' }),
  request_id: z.string().nullable().meta({ description: 'the header `x-request-id` of the response' }),
  unrecorded: z.int().meta({
    description: `failed calls before this one that were not recorded, because there were more than ${auditLimits.failuresPerMinute} in a minute`,
  }),
})
export type AuditEvent = z.infer<typeof AuditEvent>

export const AuditEventQuery = z.strictObject({
  limit: PageLimit,
  before: Id.optional().meta({ description: 'events older than the event with this id: `next_cursor` of the page before' }),
  operation: z
    .string()
    .max(64)
    .optional()
    .meta({ examples: ['createKey'] }),
  result: AuditResult.optional(),
  since: TimestampInput.optional().meta({ description: 'events at this time or later' }),
})
export type AuditEventQuery = z.infer<typeof AuditEventQuery>

export const InstallationAuditEventQuery = AuditEventQuery.extend({ account_id: Id.optional() })
export type InstallationAuditEventQuery = z.infer<typeof InstallationAuditEventQuery>

export const AuditEventPage = z.object({ items: z.array(AuditEvent), next_cursor: Id.nullable() })
export type AuditEventPage = z.infer<typeof AuditEventPage>
