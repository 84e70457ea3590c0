import { useId } from 'react'
import type { ObjectStore } from '../../api/destinations.ts'
import { SelectField, TextField } from '../../design/field.tsx'
import { Columns } from '../../design/layout.tsx'
import { SwitchField } from '../../design/toggle-field.tsx'
import type { ErrorOf } from '../../shell/call-form.tsx'
import { awsRegions } from './aws-regions.ts'
import type { Draft } from './destination-draft.ts'

const accessFields = ['region', 'role_arn', 'encryption', 'kms_key_arn'] as const
type AccessField = (typeof accessFields)[number]

/** Returns what is wrong with the fields of `AccessFields`. */
export function accessErrors(errorOf: ErrorOf): Readonly<Record<AccessField, string | undefined>> {
  return Object.fromEntries(accessFields.map((field) => [field, errorOf(field)])) as Record<AccessField, string | undefined>
}

type AccessFieldsProps = {
  readonly draft: Draft
  readonly store: ObjectStore
  readonly set: (change: Partial<Draft>) => void
  readonly errors: Readonly<Record<AccessField, string | undefined>>
  readonly disabled: boolean
}

/** How Inlet reaches a bucket, and which headers the store takes. */
export function AccessFields({ draft, set, store, errors, disabled }: AccessFieldsProps) {
  const regions = useId()
  const isGateway = store.kind === 'gateway'
  return (
    <>
      <TextField
        label="Region of the bucket"
        value={draft.region}
        onChange={(region) => set({ region: region.trim() })}
        required
        disabled={disabled}
        error={errors.region}
        hint={
          isGateway
            ? store.suggested.region === null
              ? 'The region of the gateway.'
              : `The region of the gateway, usually ${store.suggested.region}.`
            : undefined
        }
        placeholder="eu-central-1"
        list={isGateway ? undefined : regions}
        spellCheck={false}
      />
      {!isGateway && (
        <datalist id={regions}>
          {awsRegions.map((region) => (
            <option key={region} value={region} />
          ))}
        </datalist>
      )}
      {store.has_roles && <RoleFields {...{ draft, set, store, errors, disabled }} />}
      <EncryptionFields {...{ draft, set, store, errors, disabled }} />
      {(isGateway || !draft.sendsChecksums) && (
        <SwitchField
          label="Checksums"
          checked={draft.sendsChecksums}
          onChange={(sendsChecksums) => set({ sendsChecksums })}
          disabled={disabled}
          hint="Some stores reject these headers. The signature of each file covers its content anyway."
        />
      )}
      <SwitchField
        label="Path-style addresses"
        checked={draft.pathStyle}
        onChange={(pathStyle) => set({ pathStyle })}
        disabled={disabled}
        hint={
          isGateway
            ? 'Most gateways need it. Without it, the name of the bucket is a part of the host name.'
            : 'AWS does not need it, except for bucket names with dots.'
        }
      />
    </>
  )
}

function RoleFields({ draft, set, store, errors, disabled }: AccessFieldsProps) {
  const isGateway = store.kind === 'gateway'
  return (
    <Columns>
      <TextField
        label={isGateway ? 'Tenant of the role' : 'AWS account of the role'}
        value={draft.roleAccount}
        onChange={(roleAccount) => set({ roleAccount })}
        required={!isGateway}
        disabled={disabled}
        hint={isGateway ? 'Empty, unless the gateway has tenants.' : 'The 12 digits of the account that owns the bucket.'}
        placeholder={isGateway ? undefined : '123456789012'}
        inputMode={isGateway ? 'text' : 'numeric'}
        spellCheck={false}
      />
      <TextField
        label="Name of the role"
        value={draft.roleName}
        onChange={(roleName) => set({ roleName })}
        required
        disabled={disabled}
        error={errors.role_arn}
        hint="It need not exist yet. The ARN of a role will do."
        spellCheck={false}
      />
    </Columns>
  )
}

const encryptions = [
  { value: 'sse-s3', label: 'With keys of the store (SSE-S3)' },
  { value: 'kms', label: 'With a KMS key' },
  { value: 'bucket-default', label: 'As the bucket does by itself' },
] as const satisfies readonly { readonly value: Draft['encryption']; readonly label: string }[]

const encryptionHints = {
  'sse-s3': 'Inlet asks the store to encrypt each file. Stores without encryption reject that.',
  kms: undefined,
  'bucket-default': 'Inlet asks for nothing: the settings of the bucket decide.',
} as const satisfies Record<Draft['encryption'], string | undefined>

function EncryptionFields({ draft, set, store, errors, disabled }: AccessFieldsProps) {
  return (
    <>
      <SelectField
        label="Encryption"
        value={draft.encryption}
        choices={encryptions}
        onChange={(encryption) => set({ encryption })}
        disabled={disabled}
        error={errors.encryption}
        hint={encryptionHints[draft.encryption]}
      />
      {draft.encryption === 'kms' && (
        <TextField
          label="KMS key"
          value={draft.kmsKey}
          onChange={(kmsKey) => set({ kmsKey })}
          required
          disabled={disabled}
          error={errors.kms_key_arn}
          hint="Its ARN. It must be in the region of the bucket."
          placeholder={store.kind === 'gateway' ? undefined : 'arn:aws:kms:eu-central-1:123456789012:key/…'}
          spellCheck={false}
        />
      )}
    </>
  )
}
