import { newSigningKey, publicKeys, signAccessToken } from '#auth/access-tokens.ts'
import type { Scope } from '#model/api-key.ts'
import { newId } from '#model/id.ts'
import type { KeyPrincipal } from '#model/principal.ts'
import { accountId } from './ingest-node.ts'

/** Returns an access token, and what a snapshot says for a node to accept it. */
export async function anAccessToken(of: Partial<KeyPrincipal> = {}, scope: Scope = 'ingest') {
  const [signer, token_issuer, now] = [await newSigningKey(Date.now()), 'https://control.test', Date.now()]
  const principal = { account_id: accountId('a'), key_id: newId(), scopes: [scope], endpoint_ids: null, ...of }
  const token = await signAccessToken(signer, { principal, scope, issuer: token_issuer, ttlSeconds: 60, now })
  return { token, issued: { jwks: publicKeys([signer]), token_issuer } }
}
