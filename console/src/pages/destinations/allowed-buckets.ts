type Place = { readonly bucket: string; readonly prefix: string }

/** Returns what the operator has to allow, as a bucket or a bucket and a prefix. */
export function entryOf({ bucket, prefix }: Place): string {
  return prefix === '' ? bucket : `${bucket}/${prefix}`
}

/** Whether the place is an entry, or below one. */
export function isAllowed(place: Place, entries: readonly string[]): boolean {
  return entries.some((entry) => `${entryOf(place)}/`.startsWith(`${entry}/`))
}

/** Returns the bucket and the prefix of an entry. */
export function placeOf(entry: string): Place {
  const [bucket = '', ...prefix] = entry.split('/')
  return { bucket, prefix: prefix.join('/') }
}
