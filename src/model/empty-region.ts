/** The reason for the status of an endpoint in a region without nodes. Programs show it at once: nothing changes until somebody acts. */
const beginning = 'no node serves region '

const regionsNamedMax = 10

/** Somebody may have mistyped the region, or taken it from an example: `others` are those that have nodes. */
export function describeEmptyRegion(region: string, others: readonly string[]): string {
  if (others.length === 0) return `${beginning}${region}`
  const more = others.length > regionsNamedMax ? `, and ${others.length - regionsNamedMax} more` : ''
  return `${beginning}${region}; regions with nodes: ${others.slice(0, regionsNamedMax).join(', ')}${more}`
}

/** Returns that reason, if it is one of these. */
export function findEmptyRegion(reasons: readonly string[]): string | undefined {
  return reasons.find((reason) => reason.startsWith(beginning))
}
