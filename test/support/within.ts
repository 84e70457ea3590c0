/** Returns what the promise does. Throws an error if that takes longer. */
export async function within<T>(
  ms: number,
  promise: Promise<T>,
  errorOf = () => new Error(`no response for ${ms / 1000} s`),
): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(errorOf()), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
