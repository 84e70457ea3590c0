/** Ways to sign in beside the password: passkeys, and the provider of the installation. */
import { queryOptions } from '@tanstack/react-query'
import { ApiError, callSignIn } from './client.ts'

export type Passkey = { readonly id: string; readonly name: string | null; readonly createdAt: string }
type SignInAccount = { readonly id: string; readonly providerId: string }

type Ways = { readonly provider: { readonly name: string } | null; readonly is_signed_in: boolean }

/** Ways to sign in, and whether this browser has a session already: asking for the session itself fails if not. */
export const waysQuery = queryOptions({
  queryKey: ['ways'],
  queryFn: () => callSignIn<Ways>('GET', '/ways'),
  staleTime: Number.POSITIVE_INFINITY,
})

/** Sign-in accounts of the person: `credential` is a password. */
export const signInAccountsQuery = queryOptions({
  queryKey: ['sign-in-accounts'],
  queryFn: () => callSignIn<readonly SignInAccount[]>('GET', '/list-accounts'),
})

export const passkeysQuery = queryOptions({
  queryKey: ['passkeys'],
  queryFn: () => callSignIn<readonly Passkey[]>('GET', '/passkey/list-user-passkeys'),
})

/** Browsers give passkeys to hosts with a name only, not to IP addresses. */
const hasHostName = !/^[\d.]+$|:/.test(window.location.hostname)

export const canUsePasskeys = hasHostName && 'PublicKeyCredential' in window

/** Lets the browser make a passkey, and stores it. */
export async function addPasskey(name: string): Promise<unknown> {
  const query = new URLSearchParams({ name })
  const options = await callSignIn<PublicKeyCredentialCreationOptionsJSON>('GET', `/passkey/generate-register-options?${query}`)
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options)
  const made = await navigator.credentials.create({ publicKey }).catch(refusedByBrowser)
  return callSignIn('POST', '/passkey/verify-registration', { name, response: toJson(made) })
}

export async function signInByPasskey(): Promise<unknown> {
  const options = await callSignIn<PublicKeyCredentialRequestOptionsJSON>('GET', '/passkey/generate-authenticate-options')
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options)
  // Control refuses a passkey that did not verify the person.
  const chosen = await navigator.credentials
    .get({ publicKey: { ...publicKey, userVerification: 'required' } })
    .catch(refusedByBrowser)
  return callSignIn('POST', '/passkey/verify-authentication', { response: toJson(chosen) })
}

export function removePasskey(id: string): Promise<unknown> {
  return callSignIn('POST', '/passkey/delete-passkey', { id })
}

/** Leaves the console for the provider, which leads back to `to`. */
export async function goToProvider(to: string): Promise<void> {
  const { url } = await callSignIn<{ readonly url: string }>('POST', '/sign-in/provider', { to })
  window.location.assign(url)
}

export async function connectProvider(): Promise<void> {
  const { url } = await callSignIn<{ readonly url: string }>('POST', '/connect-provider', {})
  window.location.assign(url)
}

export function disconnectProvider(id: string): Promise<unknown> {
  return callSignIn('POST', '/unlink-account', { accountId: id })
}

export function changePassword(currentPassword: string, newPassword: string): Promise<unknown> {
  return callSignIn('POST', '/change-password', { currentPassword, newPassword })
}

function toJson(credential: Credential | null): unknown {
  if (credential instanceof PublicKeyCredential) return credential.toJSON()
  throw passkeyFailed('The browser gave no passkey.')
}

/** Browsers do not say why, so that pages learn nothing of which passkeys exist. */
function refusedByBrowser(cause: unknown): never {
  const isKnown = cause instanceof DOMException && cause.name === 'InvalidStateError'
  throw passkeyFailed(
    isKnown ? 'This device has a passkey for you already.' : 'No passkey was used: it was cancelled, or took too long.',
  )
}

function passkeyFailed(detail: string): ApiError {
  return new ApiError({ type: 'about:blank', title: 'No passkey', status: 400, error: 'forbidden', detail })
}
