const uuid = /([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})/

/** A reason in words. Things without a name are shown by the beginning of their id, as their own screens do; the whole stands on hover. */
export function Reason({ text }: { readonly text: string }) {
  return (
    text
      .split(uuid)
      // Every second part is an id.
      .map((part, index) =>
        index % 2 === 0 ? (
          part
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: the same id may stand twice
          <code key={index} title={part}>
            {part.slice(0, 8)}
          </code>
        ),
      )
  )
}
