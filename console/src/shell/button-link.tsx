import { createLink } from '@tanstack/react-router'
import type { ComponentProps, ReactNode } from 'react'
import { buttonClass, type Look } from '../design/button.tsx'

type AnchorProps = ComponentProps<'a'> & {
  readonly look?: Look
  readonly size?: 'small' | 'normal'
  readonly icon?: ReactNode
}

function Anchor({ look = 'plain', size = 'normal', icon, children, ...rest }: AnchorProps) {
  return (
    <a {...rest} className={buttonClass} data-look={look} data-size={size}>
      {icon}
      {children}
    </a>
  )
}

/** A link to another screen that stands among buttons. */
export const ButtonLink = createLink(Anchor)
