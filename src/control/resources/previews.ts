import type { Keyring } from '#lib/keyring.ts'
import type { Principal } from '#model/principal.ts'
import { type SecretValues, standInOf } from '#model/secret.ts'
import type { PreviewSecrets } from '#preview/preview-protocol.ts'
import { listSecretNames, readSecretValues } from '#store/accounts/secrets.ts'
import type { ControlContext } from '../context.ts'

/** Provided by the composition: `preview/preview-workers.ts`. */
export type PreviewRunner = {
  /** Takes the body of a request and returns that of the response: both are JSON. */
  readonly preview: (body: Uint8Array, secrets: PreviewSecrets, account: string, signal: AbortSignal) => Promise<Uint8Array>
}

export type PreviewsOptions = Pick<ControlContext, 'store'> & { readonly keyring: Keyring; readonly runner: PreviewRunner }

export type Previews = ReturnType<typeof previewService>

/**
 * Tries definitions on samples.
 *
 * Law: only who may create views hashes with the secrets of the account. A reader who could hash texts of their choice would find out whose hash
 * a delivered row has.
 */
export function previewService({ store, keyring, runner }: PreviewsOptions) {
  return {
    async preview(principal: Principal, body: Uint8Array, signal: AbortSignal): Promise<Uint8Array> {
      const secrets = await readTrialSecrets({ store, keyring }, principal)
      return runner.preview(body, secrets, principal.account_id, signal)
    },
  }
}

/** Returns the secrets that a caller may try definitions with. */
export async function readTrialSecrets(
  { store: { db }, keyring }: Pick<PreviewsOptions, 'store' | 'keyring'>,
  { account_id, scopes }: Principal,
): Promise<PreviewSecrets> {
  return scopes.includes('admin')
    ? { values: await readSecretValues(db, keyring, account_id), areStandIns: false }
    : { values: standIns(await listSecretNames(db, account_id)), areStandIns: true }
}

function standIns(names: readonly string[]): SecretValues {
  return Object.fromEntries(names.map((name) => [name, standInOf(name)]))
}
