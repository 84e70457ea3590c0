/** Returns whether the text is the origin of a web page as browsers send it: scheme, host and port, without a path (RFC 6454 §6.2). */
export function isOrigin(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && url.origin === text
}
