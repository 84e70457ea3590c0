/** Returns the sum of whole numbers, at most the largest one that JSON and the API can carry exactly. */
export function safeSum(numbers: readonly number[]): number {
  return Math.min(
    Number.MAX_SAFE_INTEGER,
    numbers.reduce((sum, each) => sum + each, 0),
  )
}
