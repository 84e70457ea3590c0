/** The part of the provider that the tests use: its own types would bring those of ten other packages. */
declare module 'oidc-provider' {
  import type { RequestListener } from 'node:http'

  type Client = { readonly client_id: string; readonly client_secret: string; readonly redirect_uris: readonly string[] }
  type Account = {
    readonly accountId: string
    readonly claims: () => Promise<{ readonly sub: string; readonly [claim: string]: unknown }>
  }
  type Configuration = {
    readonly jwks: { readonly keys: readonly object[] }
    readonly clients: readonly Client[]
    readonly claims: Readonly<Record<string, readonly string[]>>
    readonly findAccount: (context: unknown, id: string) => Account
  }

  // biome-ignore lint/style/noDefaultExport: the package exports it so
  export default class Provider {
    constructor(issuer: string, configuration: Configuration)
    callback(): RequestListener
  }
}
