type Located = { readonly region: string }

/** Returns the region of the newest endpoint that has nodes, or else the only one that has; undefined if somebody has to choose. */
export function preferredRegion(regions: readonly string[], endpoints: readonly Located[]): string | undefined {
  return endpoints.find(({ region }) => regions.includes(region))?.region ?? (regions.length === 1 ? regions[0] : undefined)
}
