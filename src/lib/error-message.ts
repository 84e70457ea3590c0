/** Returns the message of an error followed by those of its causes: `upload failed: connect ECONNREFUSED`. */
export function errorMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause === undefined ? error.message : `${error.message}: ${errorMessage(error.cause)}`
}
