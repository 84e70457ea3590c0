/** Whether a header can hold it. fetch repeats a header that it cannot send in its error. */
export function isApiKey(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text)
}
