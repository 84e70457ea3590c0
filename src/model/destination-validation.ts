import { z } from 'zod'
import { Destination } from './destination.ts'

/** In the order in which they are shown. */
export const validationSteps = [
  'assume_role',
  'allowlist',
  'kms',
  'write',
  'list',
  'read',
  'if_absent',
  'multipart',
  'delete',
] as const
export type ValidationStepName = (typeof validationSteps)[number]

export const ValidationSetting = z.enum([
  'bucket',
  'region',
  'role_arn',
  'path_style',
  'encryption',
  'kms_key_arn',
  'checksums',
  'trust_policy',
  'allowlist',
  'bucket_policy',
  'key_policy',
  'installation',
])
export type ValidationSetting = z.infer<typeof ValidationSetting>

export const ValidationStep = z.object({
  step: z.enum(validationSteps),
  outcome: z.enum(['passed', 'failed', 'warning', 'skipped']).meta({
    description: '`failed` keeps the destination pending; `warning`: it delivers, but see `effect`; `skipped`: not reached',
  }),
  message: z
    .string()
    .nullable()
    .meta({ description: 'what failed, the error code of the store, what to do; null unless it failed' }),
  effect: z.string().nullable().meta({ description: 'what does not work until then; null unless the outcome is `warning`' }),
  setting: ValidationSetting.nullable().meta({
    description:
      'what to change: a field of the destination, the `allowlist` that the operator keeps, the policy of the role (`trust_policy`), of the bucket or of the KMS key (`key_policy`), or `installation`: its operator must act; null if nothing is to be changed, or the store does not tell',
  }),
  value: z.string().nullable().meta({
    description:
      'the value that the field needs, if it is known, such as the region of the bucket; for the `allowlist` the entry that is missing',
  }),
})
export type ValidationStep = z.infer<typeof ValidationStep>

export const ValidatedDestination = Destination.extend({
  steps: z
    .array(ValidationStep)
    .meta({ description: 'what was tried, in this order; only what the store has: directories have neither roles nor keys' }),
})
export type ValidatedDestination = z.infer<typeof ValidatedDestination>
