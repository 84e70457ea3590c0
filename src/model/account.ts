import { z } from 'zod'
import { AllowedBuckets } from './allowed-bucket.ts'
import { CreatedApiKey } from './api-key.ts'
import { Id } from './id.ts'
import { ChangeQuotas, Quotas, Weight } from './quota.ts'
import { properName } from './text.ts'
import { Timestamp } from './timestamp.ts'

export const AccountStatus = z.enum(['active', 'suspended'])
export type AccountStatus = z.infer<typeof AccountStatus>

/** An account as the operator sees it. */
export const Account = z.object({
  id: Id,
  name: z.string().meta({ description: 'unique in the installation' }),
  status: AccountStatus.meta({
    description: 'suspended: its data is refused and its configuration cannot be changed; what it has is kept and can be read',
  }),
  weight: Weight,
  quotas: Quotas,
  allowed_buckets: z.array(z.string()).nullable().meta({
    description:
      'with `INLET_S3_CREDENTIALS=own`: the buckets that the account may use, each with or without a prefix (`lake/raw`); null where there is no such list',
  }),
  created_at: Timestamp,
})
export type Account = z.infer<typeof Account>

const Name = properName(128).meta({ examples: ['analytics'] })

export const CreateAccount = z.strictObject({ name: Name })
export type CreateAccount = z.infer<typeof CreateAccount>

export const ChangeAccount = z.strictObject({
  name: Name.optional(),
  status: AccountStatus.optional(),
  weight: Weight.optional(),
  quotas: ChangeQuotas.optional(),
  allowed_buckets: AllowedBuckets.optional().meta({
    description: 'replaces the list. Nodes stop within seconds to use what is no longer on it',
  }),
})
export type ChangeAccount = z.infer<typeof ChangeAccount>

export const CreatedAccount = Account.extend({ first_key: CreatedApiKey.meta({ description: 'has every scope' }) })
export type CreatedAccount = z.infer<typeof CreatedAccount>
