/**
 * Findings of a validation, step by step.
 *
 * Owns: which step a failure belongs to, its effect, and the setting to change. Does not own: the steps, messages of store errors.
 * Law: only a failed step keeps a destination pending. A step that delivery can do without causes a warning.
 */
import { MiB } from '#lib/bytes.ts'
import { entryOf } from '#model/allowed-bucket.ts'
import {
  type ValidationSetting,
  type ValidationStep,
  type ValidationStepName,
  validationSteps,
} from '#model/destination-validation.ts'
import { hasAllowedBuckets, type StoreTraits } from '#model/object-store.ts'
import { s3Limits } from '#objects/limits.ts'
import type { BucketTarget } from '#objects/object-store.ts'
import { ObjectStoreError } from '#objects/store-error.ts'
import { controlLimits } from '../limits.ts'

type Failure = Pick<ValidationStep, 'outcome' | 'message' | 'effect' | 'setting' | 'value'>

/** Effects of a failed step that delivery can do without. */
const effects: Partial<Record<ValidationStepName, string>> = {
  list: 'after a restart, segments are delivered once more under the same keys, and commits cannot be rebuilt from the bucket',
  read: 'backfills, re-drives and downloads of dead letters fail, and nothing checks that files exist before a commit',
  if_absent:
    'two machines that deliver the same log, as after an adoption while the other one is cut off, may each write the marker of a segment, and the later one counts in the bucket',
  multipart: `files over ${s3Limits.multipartThresholdBytes / MiB} MiB cannot be delivered, or leave parts behind when an upload fails`,
}

export class ValidationFindings {
  readonly #store: StoreTraits
  readonly #target: BucketTarget
  readonly #passed = new Set<ValidationStepName>()
  readonly #failures = new Map<ValidationStepName, Failure>()

  constructor(store: StoreTraits, target: BucketTarget) {
    this.#store = store
    this.#target = target
  }

  /** Returns what the step returns, or undefined if it fails or takes too long. `what` is for failures that do not come from the store. */
  async try<T>(step: ValidationStepName, what: string, act: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    try {
      const result = await act(AbortSignal.timeout(controlLimits.validationTimeoutMs))
      this.#passed.add(step)
      return result
    } catch (error) {
      const at = stepOf(error, step)
      if (!this.#failures.has(at)) this.#failures.set(at, this.#explain(step, what, error))
      return undefined
    }
  }

  /** Returns every step that this store has. */
  steps(): readonly ValidationStep[] {
    const { kms_key_arn } = this.#target
    const left = new Set<ValidationStepName>(this.#store.kind === 'directory' ? ['kms', 'multipart'] : [])
    if (!this.#store.has_roles) left.add('assume_role')
    if (!hasAllowedBuckets(this.#store)) left.add('allowlist')
    if (kms_key_arn === null && !this.#failures.has('kms')) left.add('kms')
    if (!this.#failures.has('assume_role')) this.#passed.add('assume_role')
    if (!this.#failures.has('allowlist')) this.#passed.add('allowlist')
    if (this.#passed.has('write')) this.#passed.add('kms')
    return validationSteps
      .filter((step) => !left.has(step))
      .map((step) => ({ step, ...(this.#failures.get(step) ?? this.#withoutFailure(step)) }))
  }

  #withoutFailure(step: ValidationStepName): Failure {
    return { outcome: this.#passed.has(step) ? 'passed' : 'skipped', message: null, effect: null, setting: null, value: null }
  }

  #explain(step: ValidationStepName, what: string, error: unknown): Failure {
    const effect = effects[step]
    const outcome =
      effect === undefined ? ({ outcome: 'failed', effect: null } as const) : ({ outcome: 'warning', effect } as const)
    if (error instanceof ObjectStoreError) {
      return { ...outcome, message: error.message, setting: this.#settingOf(error), value: this.#valueOf(error) }
    }
    // The messages of other errors may contain local paths and addresses.
    const message = `${what} (${nameOf(error)}); check that this installation can write there`
    return { ...outcome, message, setting: this.#store.kind === 'directory' ? 'installation' : null, value: null }
  }

  #settingOf({ reason, code }: ObjectStoreError): ValidationSetting | null {
    switch (reason) {
      case 'credentials_missing':
      case 'credentials_refused':
      case 'clock_skew':
        return 'installation'
      case 'assume_role_denied':
        return 'trust_policy'
      case 'not_allowed':
        return 'allowlist'
      case 'encryption_refused':
        return 'encryption'
      case 'checksums_refused':
        return 'checksums'
      case 'role_missing':
        return 'role_arn'
      case 'bucket_missing':
        return 'bucket'
      case 'wrong_region':
        return 'region'
      case 'put_denied':
      case 'get_denied':
      case 'list_denied':
      case 'delete_denied':
      case 'abort_denied':
        // Without roles, the credentials of the operator lack a permission.
        return this.#store.has_roles ? 'bucket_policy' : 'installation'
      case 'kms_denied':
        // AWS says KMS.… about a key that cannot be used by anybody. Without a key, the bucket encrypts with one that we do not know.
        return code.startsWith('KMS.') || this.#target.kms_key_arn === null ? 'kms_key_arn' : 'key_policy'
      case 'unreachable':
        if (!isUnknownName(code)) return 'installation'
        if (this.#store.kind !== 'gateway') return 'region'
        return this.#target.path_style ? 'installation' : 'path_style'
      case 'session_refused':
      case 'damaged':
      case 'throttled':
      case 'unavailable':
      case 'condition_refused':
      case 'refused':
        return null
    }
  }

  #valueOf(error: ObjectStoreError): string | null {
    const setting = this.#settingOf(error)
    if (setting === 'path_style') return 'true'
    if (setting === 'allowlist') return entryOf(this.#target)
    if (setting === 'encryption') return 'bucket-default'
    if (setting === 'checksums') return 'none'
    return setting === 'region' && error.bucketRegion !== this.#target.region ? (error.bucketRegion ?? null) : null
  }
}

/** A role or a key may fail in any step. */
function stepOf(error: unknown, step: ValidationStepName): ValidationStepName {
  if (!(error instanceof ObjectStoreError)) return step
  if (error.step === 'assume_role') return 'assume_role'
  if (error.reason === 'not_allowed') return 'allowlist'
  return error.reason === 'kms_denied' ? 'kms' : step
}

function isUnknownName(code: string): boolean {
  return code === 'ENOTFOUND' || code === 'EAI_AGAIN'
}

function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error'
  if ('code' in error && typeof error.code === 'string') return error.code
  return error.name
}
