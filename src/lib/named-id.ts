/** Returns for example `fra-1 (4f8c1f0e-…)`, or the id of something without a name. */
export function namedId(id: string, name: string | null | undefined): string {
  return name == null ? id : `${name} (${id})`
}
