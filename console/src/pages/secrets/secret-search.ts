/** `rotate` is the id of a secret that gets a new value. */
export type SecretSearch = { readonly rotate?: string | undefined }

export function newSecretSearch({ rotate }: Record<string, unknown>): SecretSearch {
  return typeof rotate === 'string' ? { rotate } : {}
}
