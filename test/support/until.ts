/** Waits for a condition, asked again and again, and fails by name when it doesn't come true in time. */
export async function until(what: string, condition: () => boolean | Promise<boolean>, timeoutMs = 10_000): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms for: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
